# frozen_string_literal: true

require_relative "../harness/doors"

module Bench
  class ActionCableTalk < Scenario
    include Doors

    title "Many to many: every client publishes"
    order 44
    at_most_rounds 2
    about <<~TEXT
      The paper finds Action Cable suited to many-to-many, because a client publishes over the connection that it has. Here 100 clients
      listen to one topic, and all publish. *Calm*: each publishes a message a second, so there are 10,000 deliveries a second. *In waves*:
      all publish at once, and again when all have all messages, as fast as possible. With Action Cable they publish over their WebSockets and,
      for comparison, by POSTs to an action; with the others only by POSTs, each client over a second connection that it keeps.
    TEXT
    headline "%.2f ms in the mean, %.0f deliveries/s", "#{LATENCY}.mean", "delivery.per_second"
    entrants(*CABLES, *MOUNTED, *STANDALONE, *OTHERS, quick: [YARDSTICK, "rails-c"])
    setting :clients, 100, quick: 20, about: "clients, which all publish"
    setting :seconds, 5, quick: 1, about: "of the calm"
    setting :waves, 20, quick: 3, about: "waves"
    setting :doors, %w[socket action hub post], quick: %w[socket hub], about: "publishers"

    SHAPES = {
      "calm" => ["Calm: a message a second from each", "99th percentile of latency, a message a second from each", "ms", "#{LATENCY}.p99"],
      "waves" => ["In waves: as fast as it goes", "Deliveries, as fast as it goes", "a second", "delivery.per_second"]
    }.freeze

    def groups = SHAPES.keys.map { |shape| entrants.flat_map { |name| (doors & doors_of(name)).map { |door| cell("#{shape} #{door}", name, clients) } } }

    def measure(cell)
      shape, door = cell.test.split
      pace = (shape == "calm") ? {rate: clients, messages: clients * seconds} : {sync: true, together: clients, messages: clients * waves}
      on_rested_stage(cell.entrant, door) { |stage| stage.load(subscribers: cell.size, publishers: cell.size, warmup: clients, size: size, **pace) }
    end

    def tables
      columns = [["Server", :title], ["Published by", ->(its) { publisher(its) }], *times(LATENCY, head: "%s, ms"), ["deliveries per second", "delivery.per_second:0"],
        ["CPU µs per delivery", "delivery.cpu_us_each"], *busy("publish")]
      groups.zip(SHAPES.values).map { |its, (title, *)| table(title, columns, its) }
    end

    def plots
      groups.zip(SHAPES).map { |cells, (shape, (_, title, unit, path))|
        bars("talk-#{shape}.svg", path, cells, title: title, unit: unit) { |its| "#{title_of(its.entrant)}, #{publisher(its).sub("the hub's own address", "its address")}" }
      }.reduce({}, :merge)
    end

    private

    def publisher(its) = NAMES.fetch(its.test.split.last)
  end
end
