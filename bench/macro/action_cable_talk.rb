# frozen_string_literal: true

require_relative "../harness/doors"
require_relative "../harness/scenario"

module Bench
  class ActionCableTalk < Scenario
    include Doors

    suite Suite::ACTION_CABLE
    title "Everybody publishes to everybody"
    order 44
    at_most_rounds 2
    about <<~TEXT
      The paper finds Action Cable suited to many-to-many, since a client publishes over the connection that it has. So: 100 clients on
      one topic, all of whom publish. *Calm*: each a message a second, so 10,000 deliveries a second. *In waves*: all at once, and again when all have
      all, as fast as that goes. With Action Cable they publish over their WebSockets, and, to compare, by POSTs to an action; with the
      others by POSTs alone, each client over a second connection that it keeps.
    TEXT
    entrants(*CABLES, *MOUNTED, *STANDALONE, *OTHERS, quick: [YARDSTICK, "rails-c"])
    setting :clients, 100, quick: 20, about: "clients, all of whom publish"
    setting :seconds, 5, quick: 1, about: "of the calm"
    setting :waves, 20, quick: 3, about: "waves"
    setting :size, 200, about: "bytes of a message"

    setting :doors, %w[socket action hub post], quick: %w[socket hub], about: "by whom is published"

    SHAPES = {"calm" => "Calm: a message a second from each", "waves" => "In waves: as fast as it goes"}.freeze
    TIMES = %w[mean median min max p99].freeze
    LATENCY = %w[delivery latency_ms].freeze

    def groups = SHAPES.keys.map { |shape| entrants.flat_map { |name| its_doors(name).map { |door| of(shape, door, name) } } }

    def measure(cell)
      shape, door = cell.test.split
      pace = (shape == "calm") ? {rate: clients, messages: clients * seconds} : {sync: true, together: clients, messages: clients * waves}
      on_rested_stage(cell.entrant, door) do |stage|
        stage.load(subscribers: cell.size, publishers: cell.size, warmup: clients, size: size, **pace)
      end
    end

    def headline(figures) = format("%.2f ms in the mean, %.0f deliveries/s", figures.dig(*LATENCY, "mean"), figures.dig("delivery", "per_second"))

    def tables(results)
      SHAPES.map do |shape, title|
        rows = groups.flatten.select { |its| its.test.start_with?(shape) }.map { |its| row(results, its) }
        Table.new(title: title, rows: rows,
          head: ["Server", "Published by", *TIMES.map { |time| "#{time}, ms" }, "deliveries per second", "CPU µs per delivery", *BUSY])
      end
    end

    def plots(results)
      {"calm" => ["99th percentile of latency, a message a second from each", "ms", [*LATENCY, "p99"]],
       "waves" => ["Deliveries, as fast as it goes", "a second", %w[delivery per_second]]}.map { |shape, (title, unit, path)|
        cells = groups.flatten.select { |its| its.test.start_with?(shape) }
        figures = cells.to_h { |its| ["#{title_of(its.entrant)}, #{NAMES.fetch(its.test.split.last).sub("the hub's own address", "its address")}", results.spread(its, *path)] }
        bars("talk-#{shape}.svg", figures, title: title, unit: unit)
      }.reduce({}, :merge)
    end

    private

    def its_doors(name) = doors & doors_of(name)

    def of(shape, door, name) = cell("#{shape} #{door}", name, clients)

    def row(results, its)
      [title_of(its.entrant), NAMES.fetch(its.test.split.last), *TIMES.map { |time| show(results.spread(its, *LATENCY, time)) },
        show(results.spread(its, "delivery", "per_second"), 0), show(results.spread(its, *%w[delivery cpu_us_each])), *busy(results, its, "publish")]
    end
  end
end
