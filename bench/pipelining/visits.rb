# frozen_string_literal: true

require "etc"
require "open3"
require_relative "../harness/scenario"
require_relative "../link/profiles"
require_relative "../link/shaped_link"
require_relative "bound"
require_relative "site"

module Bench
  # What the scenarios of visits over slow links have in common. A cell's test is "LINK SERVER PAGE", its size how many images the
  # page has, its entrant the client; each has a link, a server and a client of its own.
  module Visits
    SECONDS = "seconds"
    OVER_BOUND = "over_bound"
    ROUND_TRIPS = "round_trips"
    YARDSTICK = "nginx" # the server of which the targets speak
    KNOBS = %w[
      tcp_congestion_control tcp_slow_start_after_idle tcp_no_metrics_save tcp_window_scaling tcp_sack tcp_timestamps tcp_ecn tcp_fastopen
      tcp_moderate_rcvbuf tcp_rmem tcp_wmem tcp_limit_output_bytes
    ].freeze
    # A visit mostly waits for its link: of a core it takes a tenth.
    EACH_CORE = 2
    LOCK = Mutex.new
    private_constant :EACH_CORE, :LOCK

    # Of the scenarios as classes.
    module Facts
      def obstacle = ShapedLink.obstacle

      # The kernel's settings, as a link's own network has them, are part of what is measured.
      def versions = {"nginx" => nginx, "TCP" => Visits.tcp, "several links" => "#{at_once} at once"}.compact

      private

      def nginx
        Front::Nginx.new.versions["nginx"]
      rescue Front::Unavailable
        nil # its runs say why
      end
    end

    class << self
      def included(scenario)
        super
        scenario.extend(Facts)
        scenario.suite(Suite::PIPELINING)
        scenario.at_once(EACH_CORE * Etc.nprocessors)
      end

      # @return [String]
      def tcp = LOCK.synchronize { @tcp ||= read_knobs }

      private

      def read_knobs
        out = ShapedLink.run { |link| Open3.capture2(*link.broker, "sh", "-c", "cd /proc/sys/net/ipv4 && grep -H . #{KNOBS.join(" ")}; true").first }
        known = out.lines.map { |line| line.chomp.sub(":", " ").tr("\t", " ").delete_prefix("tcp_") }
        [*known, "initial window 10 segments, as the kernel has it"].join("; ")
      rescue ShapedLink::Unavailable
        nil
      end
    end

    # Clients on the same page are measured one after another, in turn. Each visit has a link of its own, so pages do not share one.
    #
    # @param cell [Cell]
    # @return [Array] the page: link, server, size and number of images
    def place(cell) = [cell.test, cell.size]

    # @return [Hash] figures
    def measure_in(round, cell)
      link, server, name = cell.test.split
      visited(link, server, Sheet.named(name, cell.size), cell.entrant, seed: round + 1)
    end

    # @return [String]
    def headline(figures) = format("%.2f s, %.2f times the bound", figures.dig(SECONDS).to_f, figures.dig(OVER_BOUND).to_f)

    private

    # @param seed [Integer] of what is lost
    # @return [Hash] "seconds", "bound", "over_bound", "round_trips" (how many of the link's the time would be), …
    def visited(link, server, sheet, entrant, seed:)
      settings = Profiles.fetch(link)
      bound = Bound.new(head: Site.head_bytes(server), **settings).seconds(sheet)
      figures = ShapedLink.run(seed: seed, **settings) do |shaped|
        Site.run(server, link: shaped, sheets: [sheet]) { |site| Entrants.fetch(entrant).visit(site, sheet) }
      end
      seconds = figures[SECONDS] or return figures.merge("whole" => false)
      figures.merge("bound" => bound, OVER_BOUND => seconds / bound, ROUND_TRIPS => seconds / Profiles.round_trip(link))
    end

    # Those of the clients that this server can serve: Puma has no TLS here.
    def clients_of(server) = entrants.reject { |name| server != YARDSTICK && Entrants.fetch(name).secure? }

    # One target about many cells: the one in which it is missed most speaks for all.
    #
    # @param spreads [Hash{String => Spread, nil}] by what is said of the cell
    # @param cells [Array<Cell>] behind them
    # @param entrant [String]
    # @return [Target]
    def worst(name, entrant, spreads, cells, results, at_most:)
      which, spread = spreads.compact.max_by { |_, its| its.median }
      Target.new(name: which ? "#{name}; the worst is #{which}" : name, entrant: entrant, spread: spread, whole: results.whole?(*cells), at_most: at_most)
    end

    # Over the best of others, taken within each round.
    #
    # @return [Spread, nil]
    def over_best(results, above, others) = results.combine([above, *others], SECONDS) { |own, *theirs| own / theirs.min }

    # A figure alone, where the table is wide: every run is in the JSON.
    def brief(spread, digits = 2) = spread ? format("%.#{digits}f", spread.median) : "–"

    def heading(link, server) = "#{link} (#{Profiles.describe(link)}), #{Site::SERVERS.fetch(server).new.title}"
  end
end
