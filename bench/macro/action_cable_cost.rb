# frozen_string_literal: true

require_relative "../harness/doors"

module Bench
  class ActionCableCost < Scenario
    include Doors

    title "A delivery, a subscriber, a connection"
    order 41
    about <<~TEXT
      The server's CPU for a delivery and for the subscription of a client, and its memory for an open connection. One topic; the next
      message is published when all have the last. The CPU includes the publish, so the table names the publisher: *an action* of the Rails
      application, by a POST; *a thread within* its process, as a job or a callback after a commit would publish, without Puma and Rails;
      *the hub's own address*, by a POST, mounted or standalone; elsewhere *a POST* to the server. With Redis the CPU is that of both
      processes. Memory is the growth of resident memory, without the kernel's for the sockets. The figures for subscribing and memory, and
      the plots, are those of the first of these publishers that a server has.
    TEXT
    headline "%.2f µs of CPU a delivery, %.0f µs a subscribe", "delivery.cpu_us_each", "connect.cpu_us_each"
    entrants FLOOR, *CABLES, *MOUNTED, *STANDALONE, *OTHERS, quick: [FLOOR, *CABLES, *MOUNTED, "hikyaku-c", "message-bus", "iodine", "threads"]
    setting :subscribers, [100, 1_000, 10_000], quick: [100], about: "numbers of clients"
    setting :doors, %w[action within hub post], quick: %w[within hub post], about: "publishers"
    setting :deliveries, 100_000, quick: 2_000, about: "deliveries of a run, about"
    setting :rest, 1_000, quick: 300, about: "milliseconds of rest before memory is read"

    CPU = "delivery.cpu_us_each"
    SUBSCRIBE = "connect.cpu_us_each"
    MEMORY = "connect.rss_kb_each"
    P99 = "#{LATENCY}.p99"
    # Action Cable's CPU of a delivery over this, by the number of clients.
    TIMES_LESS = {"c" => {100 => 14, 1_000 => 13, 10_000 => 9}, "ruby" => {100 => 8, 1_000 => 8, 10_000 => 6}}.freeze
    NATIVE = %w[rails-c hikyaku-c].freeze
    MAX_OF_SUBSCRIBE = 0.1
    MAX_OF_MEMORY = 0.1
    MAX_OF_P99 = 0.2
    CROWD = 1_000
    PATIENCE = 180 # seconds: 10,000 clients of Action Cable take long

    def groups = subscribers.map { |n| entrants.flat_map { |name| its_doors(name).map { |door| cell(door, name, n) } } }

    def measure(cell)
      messages = (deliveries / [cell.size, 1].max).clamp(10, 1_000)
      on_rested_stage(cell.entrant, cell.test) do |stage|
        stage.load(subscribers: cell.size, messages: messages, warmup: messages / 10 + 1, sync: true, size: size, settle: rest, timeout: PATIENCE)
      end
    end

    def targets
      return [] unless entrants.include?(YARDSTICK)
      subscribers.flat_map { |n| delivery_targets(n) } + NATIVE.intersection(entrants).flat_map { |name| other_targets(name) }
    end

    def tables
      server = [["Server", :title], ["Published by", ->(its) { NAMES.fetch(its.test) }], ["Clients", :size]]
      over = ->(path) { ["over Action Cable's", ->(its) { show(ratio(its, yardstick((path == CPU) ? its.test : "action", its.size), path), 3) }] }
      first = subscribers.product(entrants).map { |n, name| first_cell(name, n) }
      [
        table("CPU of the server per delivery", [*server, ["µs per delivery", CPU], ["over the floor", ->(its) { show(ratio(its, cell("post", FLOOR, its.size), CPU), 3) }],
          over.call(CPU), ["µs per publish to all", "publish.cpu_us_each:0"], ["bytes per delivery", "delivery.bytes_each:0"], *busy("publish")]),
        table("Subscribing, and memory", [["Server", :title], ["Clients", :size], ["CPU µs to subscribe", "#{SUBSCRIBE}:0"], over.call(SUBSCRIBE),
          ["subscribes per second", "connect.per_second:0"], ["KB of memory per connection", MEMORY], over.call(MEMORY), *busy("connect")], first),
        table("Latency, publish to receipt, ms", [*server, *times(LATENCY)])
      ]
    end

    def plots
      crowd = (entrants - [FLOOR]).map { |name| first_cell(name, subscribers.max) }
      plot("delivery-cpu.svg", CPU, title: "CPU of the server per delivery", y: "µs")
        .merge(plot("p99.svg", P99, title: "99th percentile of latency, the next when all have the last", y: "ms"))
        .merge(bars("connection-memory.svg", MEMORY, crowd, title: "Memory per connection, #{subscribers.max} clients", unit: "KB"))
    end

    private

    def its_doors(name) = doors_of(name) & doors

    def first_cell(name, n) = cell(its_doors(name).first, name, n)

    # Action Cable's cell with the same door, or else with its first.
    def yardstick(door, n) = cell((its_doors(YARDSTICK) & [door]).first || its_doors(YARDSTICK).first, YARDSTICK, n)

    def delivery_targets(n)
      HIKYAKU.intersection(entrants).flat_map do |name|
        factor = TIMES_LESS.fetch(name[/\w+\z/])[n] or next []
        its_doors(name).map do |door|
          ratio_target("CPU per delivery over Action Cable's, #{n} clients, published by #{NAMES.fetch(door)}: 1/#{factor}", cell(door, name, n), yardstick(door, n), CPU,
            at_most: (1.0 / factor).floor(4))
        end
      end
    end

    def other_targets(name)
      over = ->(what, n, path, bound) do
        ratio_target("#{what} over Action Cable's, #{n} clients", first_cell(name, n), yardstick(its_doors(name).first, n), path, at_most: bound)
      end
      [*subscribers.map { |n| over.call("CPU to subscribe a client", n, SUBSCRIBE, MAX_OF_SUBSCRIBE) },
        *subscribers.grep(CROWD).map { |n| over.call("p99 latency", n, P99, MAX_OF_P99) },
        *subscribers.select { |n| n >= CROWD }.last(1).map { |n| over.call("memory per connection", n, MEMORY, MAX_OF_MEMORY) }]
    end

    def plot(file, path, **more) = lines(file, entrants, subscribers, x: "clients", y_log: true, **more) { |name, n| spread(first_cell(name, n), path) }
  end
end
