# frozen_string_literal: true

module Bench
  # Scenarios that are measured together and make one page.
  Suite = Struct.new(:key, :title, :folder, :rounds, :entrant, :about, :reading, keyword_init: true) do
    def scenarios = Scenario.all.select { |scenario| scenario.suite == self }
  end

  class Suite
    READING = "CPU is that of the server's processes, as the scheduler counts it in nanoseconds. A ratio is taken within a round. " \
      "Compare ratios, not microseconds: they depend on the machine."

    ALL = [
      new(key: "all", title: "What it costs", folder: "", rounds: 5, entrant: "server", reading: READING,
        about: "Each server runs alone on one core, the load generator on another, over the loopback. A message has 200 bytes."),
      new(key: "broker", title: "What the broker costs", folder: "broker", rounds: 5, entrant: "server", reading: READING,
        about: "Each broker runs alone on one core, the load generator on another. The brokers' data is on the disk of the checkout."),
      new(key: "action_cable", title: "Beside Action Cable", folder: "action_cable", rounds: 3, entrant: "server", reading: READING,
        about: "Each server runs alone on one core, with all its processes, the clients on another. A message has 200 bytes."),
      new(key: "pipelining", title: "Pipelining on slow links", folder: "pipelining", rounds: 3, entrant: "client",
        about: "Client and server are in two networks. The link emulator of `bench/link` sets the rate, delay and loss between them. As many links are " \
          "measured at once as the machine has cores; each has a client and a server of its own. A time is that of the whole page: its HTML and its images.",
        reading: "A ratio is taken within a round. kB are 1,000 bytes. A client marked (F) gets the list of URLs and does not read the HTML. The bound is " \
          "the least time over one new connection: see `bench/pipelining/bound.rb`."),
      new(key: "codec", title: "JSON or MessagePack, compressed", folder: "codec", rounds: 3, entrant: "server",
        about: "A Rails application in Puma, and nginx where it is named, run on one core, the clients on another, over the loopback. Each of 100 clients " \
          "repeats its request as soon as it has the response. The benchmark decodes and checks one response; all others must have the same bytes.",
        reading: READING.sub("the server's processes", "all processes, Puma's and nginx's"))
    ].to_h { |suite| [suite.key, suite] }.freeze
  end
end
