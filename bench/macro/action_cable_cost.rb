# frozen_string_literal: true

require_relative "../harness/action_cable_conclusion"
require_relative "../harness/doors"
require_relative "../harness/plot"
require_relative "../harness/scenario"

module Bench
  class ActionCableCost < Scenario
    include Doors

    suite Suite::ACTION_CABLE
    title "A delivery, a subscriber, a connection"
    order 41
    about <<~TEXT
      What a server spends on a delivery, on letting a client subscribe, and on a connection that stands. One topic; the next message
      is published only when all have the last. The CPU is that of publishing too, so it is said by whom: *an action* of the
      Rails application, by a POST; *a thread within* its process, as a job or a callback after a commit would, which leaves Puma
      and Rails out of it; *the hub's own address*, by a POST, mounted or standalone; elsewhere *a POST* to whatever is there. With Redis the CPU
      is that of both processes. Memory is by how much what is resident grows; the kernel's own for the sockets is not in it.
      What is said of subscribing and of memory, and the plots, are of the first of these that a server has.
    TEXT
    entrants FLOOR, *CABLES, *MOUNTED, *STANDALONE, *OTHERS, quick: [FLOOR, *CABLES, *MOUNTED, "hikyaku-c", "message-bus", "iodine", "threads"]
    setting :subscribers, [100, 1_000, 10_000], quick: [100], about: "numbers of clients"
    setting :doors, %w[action within hub post], quick: %w[within hub post], about: "by whom is published"
    setting :deliveries, 100_000, quick: 2_000, about: "deliveries of a run, about"
    setting :size, 200, about: "bytes of a message"
    setting :rest, 1_000, quick: 300, about: "milliseconds of rest before memory is looked at"

    CPU = %w[delivery cpu_us_each].freeze
    SUBSCRIBE = %w[connect cpu_us_each].freeze
    MEMORY = %w[connect rss_kb_each].freeze
    P99 = %w[delivery latency_ms p99].freeze
    TIMES = %w[mean median min max p99].freeze
    WARMUP_SHARE = 10
    # How often what Action Cable spends on a delivery is to hold what this does, by the number of clients.
    TIMES_LESS = {
      "c" => {100 => 14, 1_000 => 13, 10_000 => 9}, "ruby" => {100 => 8, 1_000 => 8, 10_000 => 6}
    }.freeze
    NATIVE = %w[rails-c hikyaku-c].freeze
    MOST_OF_SUBSCRIBE = 0.1
    MOST_OF_MEMORY = 0.1
    MOST_OF_P99 = 0.2
    CROWD = 1_000
    PATIENCE = 180 # seconds: 10,000 clients of Action Cable take their time

    def groups = subscribers.map { |n| entrants.flat_map { |name| its_doors(name).map { |door| cell(door, name, n) } } }

    def measure(cell)
      messages = (deliveries / [cell.size, 1].max).clamp(10, 1_000)
      on_rested_stage(cell.entrant, cell.test) do |stage|
        stage.load(subscribers: cell.size, messages: messages, warmup: messages / WARMUP_SHARE + 1, sync: true, size: size, settle: rest,
          timeout: PATIENCE)
      end
    end

    def headline(figures) = format("%.2f µs of CPU a delivery, %.0f µs a subscribe", figures.dig(*CPU), figures.dig(*SUBSCRIBE))

    def targets(results)
      return [] unless entrants.include?(YARDSTICK)
      subscribers.flat_map { |n| deliveries_targets(results, n) } + NATIVE.intersection(entrants).flat_map { |name| other_targets(results, name) }
    end

    def tables(results) = [cpu(results), subscribing(results), latency(results)]

    def plots(results)
      {
        "delivery-cpu.svg" => plot("CPU of the server per delivery", "µs") { |its| results.spread(its, *CPU) },
        "p99.svg" => plot("99th percentile of latency, the next when all have the last", "ms") { |its| results.spread(its, *P99) }
      }.compact.merge(memory_bars(results))
    end

    private

    def its_doors(name) = doors_of(name) & doors

    # What a figure of Action Cable's is compared with: the same door, and where it has not that, an action.
    def yardstick(door, n) = cell((its_doors(YARDSTICK).include?(door) ? door : its_doors(YARDSTICK).first), YARDSTICK, n)

    def each_cell = subscribers.product(entrants).flat_map { |n, name| its_doors(name).map { |door| cell(door, name, n) } }

    def deliveries_targets(results, n)
      (MOUNTED + STANDALONE).intersection(entrants).flat_map do |name|
        times = TIMES_LESS.fetch(name[/\w+\z/])[n] or next []
        its_doors(name).map do |door|
          results.ratio_target("CPU per delivery over Action Cable's, #{n} clients, published by #{NAMES.fetch(door)}: 1/#{times}",
            cell(door, name, n), yardstick(door, n), *CPU, at_most: (1.0 / times).floor(4))
        end
      end
    end

    def other_targets(results, name)
      door = its_doors(name).first
      over = ->(what, n, path, bound) do
        results.ratio_target("#{what} over Action Cable's, #{n} clients", cell(door, name, n), yardstick(door, n), *path, at_most: bound)
      end
      [
        *subscribers.map { |n| over.call("CPU to subscribe a client", n, SUBSCRIBE, MOST_OF_SUBSCRIBE) },
        *subscribers.grep(CROWD).map { |n| over.call("p99 latency", n, P99, MOST_OF_P99) },
        *subscribers.select { |n| n >= CROWD }.last(1).map { |n| over.call("memory per connection", n, MEMORY, MOST_OF_MEMORY) }
      ]
    end

    def cpu(results)
      rows = each_cell.map do |its|
        [title_of(its.entrant), NAMES.fetch(its.test), its.size, show(results.spread(its, *CPU)),
          *[cell("post", FLOOR, its.size), yardstick(its.test, its.size)].map { |other| show(results.ratio(its, other, *CPU), 3) },
          show(results.spread(its, "publish", "cpu_us_each"), 0), show(results.spread(its, "delivery", "bytes_each"), 0),
          *busy(results, its, "publish")]
      end
      Table.new(title: "CPU of the server per delivery", rows: rows,
        head: ["Server", "Published by", "Clients", "µs per delivery", "over the floor", "over Action Cable's", "µs per publish to all",
          "bytes per delivery", *BUSY])
    end

    def subscribing(results)
      rows = subscribers.product(entrants).map do |n, name|
        its, other = cell(its_doors(name).first, name, n), yardstick("action", n)
        [title_of(name), n, show(results.spread(its, *SUBSCRIBE), 0), show(results.ratio(its, other, *SUBSCRIBE), 3),
          show(results.spread(its, "connect", "per_second"), 0), show(results.spread(its, *MEMORY), 2), show(results.ratio(its, other, *MEMORY), 3),
          *busy(results, its, "connect")]
      end
      Table.new(title: "Subscribing, and memory", rows: rows,
        head: ["Server", "Clients", "CPU µs to subscribe", "over Action Cable's", "subscribes per second", "KB of memory per connection",
          "over Action Cable's", *BUSY])
    end

    def latency(results)
      rows = each_cell.map do |its|
        [title_of(its.entrant), NAMES.fetch(its.test), its.size, *TIMES.map { |time| show(results.spread(its, "delivery", "latency_ms", time)) }]
      end
      Table.new(title: "Latency, publish to receipt, ms", head: ["Server", "Published by", "Clients", *TIMES], rows: rows)
    end

    def plot(title, unit)
      series = entrants.filter_map do |name|
        points = subscribers.filter_map do |n|
          (spread = yield(cell(its_doors(name).first, name, n))) && [n, spread.median, spread.min, spread.max]
        end
        {name: title_of(name), points: points} if points.any?
      end
      Plot.new(title: title, x: "clients", y: unit, series: series, y_log: true) if series.any?
    end

    def memory_bars(results)
      n = subscribers.max
      figures = (entrants - [FLOOR]).to_h { |name| [title_of(name), results.spread(cell(its_doors(name).first, name, n), *MEMORY)] }
      bars("connection-memory.svg", figures, title: "Memory per connection, #{n} clients", unit: "KB")
    end
  end
end
