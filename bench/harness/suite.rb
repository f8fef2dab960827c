# frozen_string_literal: true

module Bench
  # Scenarios that are measured together and make one page.
  Suite = Struct.new(:key, :title, :about, :folder, :rounds, :conclusion, :reading, :who, :resumes, keyword_init: true) do
    # @return [Array<Class>] its scenarios, in the order in which they are told
    def scenarios = Scenario.all.select { |scenario| scenario.suite == self }

    # What its figures say in words.
    #
    # @param results [Hash{Scenario => Results}]
    # @return [String, nil] Markdown; nil when nothing can be said
    def conclude(results) = conclusion && Object.const_get(conclusion).new(results).to_s

    # @return [String] what takes part: "server", "client"
    def who = self[:who] || "server"

    # @return [String] how its tables are to be read
    def reading = self[:reading] || Suite::OF_SERVERS
  end

  class Suite
    OF_SERVERS = <<~TEXT.chomp
      CPU is the
      server's own, in the scheduler's nanoseconds, over all its threads and processes. A ratio is taken within a round. Compare
      ratios, not microseconds: they depend on the machine.
    TEXT

    HUB = new(key: "all", title: "What it costs", folder: "", rounds: 5,
      about: "Each server runs alone on one core, the load on another, over loopback; a message has 200 bytes.")
    BROKER = new(key: "broker", title: "What the broker costs", folder: "broker", rounds: 5,
      about: "Each broker runs alone on one core, the load on another; its data is on the disk of the checkout.")
    ACTION_CABLE = new(key: "action_cable", title: "Beside Action Cable", folder: "action_cable", rounds: 3,
      conclusion: "Bench::ActionCableConclusion",
      about: "Each server runs alone on one core, with all its processes, the clients on another; a message has 200 bytes.")
    PIPELINING = new(key: "pipelining", title: "Pipelining on slow links", folder: "pipelining", rounds: 3, who: "client", resumes: true,
      conclusion: "Bench::PipeliningConclusion",
      about: "Client and server are in two networks with a link between them, whose rate, delay and loss bench/link sets; as many links\n" \
             "at once as there are cores, each with a client and a server of its own. The whole page counts: its HTML, then its images.",
      reading: <<~TEXT.chomp)
        A ratio is taken within a round.
        kB are 1,000 bytes. (F) is given the list of URLs and does not read the HTML. The bound is that of one new connection: see
        bench/pipelining/bound.rb.
      TEXT
    CODEC = new(key: "codec", title: "JSON or MessagePack, compressed", folder: "codec", rounds: 3, resumes: true,
      conclusion: "Bench::CodecConclusion",
      about: "A Rails application in Puma, and nginx where it is named, on one core; the clients on another, over loopback. Each of 100 clients\n" \
             "asks for the same again as soon as it has it. One answer is decoded and looked at, all others must have its bytes.",
      reading: <<~TEXT.chomp)
        CPU is that of all processes, Puma's and nginx's, in the scheduler's nanoseconds. A ratio is taken within a round. Compare
        ratios, not microseconds: they depend on the machine.
      TEXT
    ALL = [HUB, BROKER, ACTION_CABLE, PIPELINING, CODEC].to_h { |suite| [suite.key, suite] }.freeze
  end
end
