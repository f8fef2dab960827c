# frozen_string_literal: true

require "etc"
require_relative "../harness/scenario"
require_relative "../link/link"
require_relative "bound"
require_relative "site"

module Bench
  # What the scenarios of visits over slow links share. A cell's test is "LINK SERVER PAGE", its size the number of images, its
  # entrant the client. Each visit has a link, a server and a client process of its own.
  module Visits
    SECONDS = "seconds"
    OVER_BOUND = "over_bound"
    ROUND_TRIPS = "round_trips"
    YARDSTICK = "nginx" # the server of the targets
    KNOBS = %w[
      tcp_congestion_control tcp_slow_start_after_idle tcp_no_metrics_save tcp_window_scaling tcp_sack tcp_timestamps tcp_ecn tcp_fastopen
      tcp_moderate_rcvbuf tcp_rmem tcp_wmem tcp_limit_output_bytes
    ].freeze
    SERIAL = "net-http"
    OURS = "hikyaku"
    MANY = 20 # images, from which on the bound is a target
    # Of the targets about the bound: the client, the bounds by link, and words.
    BOUND_TARGETS = [
      [OURS, {"wcdma-260" => 1.12, "weak-4g" => 1.2, "satellite" => 1.65}.freeze, "new connections"], ["hikyaku-open", {"satellite" => 0.8}.freeze, "connections open"]
    ].freeze
    OTHERS_TARGETS = [["hikyaku-list", %w[curl-6 curl-h2], "the best of curl's, given the URLs"], [OURS, %w[httpx], "httpx, reading the HTML"]].freeze
    UNKNOWN_TARGETS = {"hikyaku-new" => OURS, "chromium-proxy-new" => "chromium-proxy"}.freeze
    MAX_OVER_OTHERS = 1.03
    MAX_MORE_ROUND_TRIPS = 2
    VISITS_PER_CORE = 2 # a visit mostly waits for its link: it uses a tenth of a core

    # Of the scenarios as classes.
    module Facts
      def obstacle = ShapedLink.obstacle

      # The kernel's settings in a new network are part of what is measured.
      def versions
        {"nginx" => (Front.new("pages.conf").versions["nginx"] if DebianPackage.find("nginx")), "TCP" => Visits.tcp, "several links" => "#{at_once} at once"}.compact
      end
    end

    def self.included(scenario)
      super
      scenario.extend(Facts)
      scenario.suite("pipelining")
      scenario.headline("%.2f s, %.2f times the bound", SECONDS, OVER_BOUND)
      scenario.at_once(VISITS_PER_CORE * Etc.nprocessors)
    end

    def self.tcp
      @tcp ||= begin
        out = ShapedLink.run { |link| Open3.capture2(*link.server, "sh", "-c", "cd /proc/sys/net/ipv4 && grep -H . #{KNOBS.join(" ")}; true").first }
        [*out.lines.map { |line| line.chomp.sub(":", " ").tr("\t", " ").delete_prefix("tcp_") }, "initial window 10 segments, as the kernel has it"].join("; ")
      end
    rescue Unavailable
      nil
    end

    # Clients on the same page are measured one after another, in turn.
    def place(cell) = [cell.test, cell.size]

    def measure_in(round, cell)
      link, server, name = cell.test.split
      visited(link, server, Sheet.named(name, cell.size), cell.entrant, seed: round + 1)
    end

    private

    # @param seed [Integer] of the losses
    # @return [Hash] "seconds", "bound", "over_bound", "round_trips" (the time in round trips of the link), …
    def visited(link, server, sheet, entrant, seed:)
      settings = ShapedLink.profile(link)
      bound = Bound.new(head: Site.head_bytes(server), **settings).seconds(sheet)
      figures = ShapedLink.run(seed: seed, **settings) do |shaped|
        Site.run(server, link: shaped, sheets: [sheet]) { |site| Entrants.fetch(entrant).visit(site, sheet) }
      end
      seconds = figures[SECONDS] or return figures.merge("whole" => false)
      figures.merge("bound" => bound, OVER_BOUND => seconds / bound, ROUND_TRIPS => seconds / ShapedLink.round_trip(link))
    end

    # Puma has no TLS here.
    def clients_of(server) = entrants.reject { |name| server != YARDSTICK && Entrants.fetch(name).secure }

    def taking_part?(*names) = servers.include?(YARDSTICK) && (names - entrants).empty?

    # One target about many cells, which the worst of them decides.
    #
    # @param spreads [Hash{String => Spread, nil}] by the words for the cell
    def worst(name, entrant, spreads, cells, at_most:)
      which, spread = spreads.compact.max_by { |_, its| its.median }
      Target.new(name: which ? "#{name}; the worst is #{which}" : name, entrant: entrant, spread: spread, whole: whole?(*cells), at_most: at_most)
    end

    # The blocks of these give the cells of a client, by the words for them.
    def over_bound(link, what)
      BOUND_TARGETS.filter_map do |name, most, how|
        its = yield(name)
        next unless most.key?(link) && its.any? && taking_part?(name)
        worst("#{link}: #{what}, Hikyaku over the bound, #{how}", name, its.transform_values { |one| spread(one, OVER_BOUND) }, its.values, at_most: most[link])
      end
    end

    def over_others(link, what)
      OTHERS_TARGETS.filter_map do |name, others, words|
        own, *theirs = [name, *others & entrants].map { |one| yield(one) }
        next unless theirs.any? && own.any? && taking_part?(name)
        spreads = own.to_h { |which, one| [which, over_best(one, theirs.map { |its| its.fetch(which) })] }
        worst("#{link}: #{what}, Hikyaku over #{words}", name, spreads, [own, *theirs].flat_map(&:values), at_most: MAX_OVER_OTHERS)
      end
    end

    def unknown(link, what)
      UNKNOWN_TARGETS.filter_map do |name, known|
        new, old = yield(name), yield(known)
        next unless new.any? && taking_part?(name, known)
        spreads = new.to_h { |which, one| [which, combine([one, old.fetch(which)], ROUND_TRIPS) { |more, less| more - less }] }
        worst("#{link}: #{what}, round trips more where the origin is not known", name, spreads, new.values + old.values, at_most: MAX_MORE_ROUND_TRIPS)
      end
    end

    # All visits to a page have the same bound.
    def bound_of(cells) = cells.filter_map { |one| spread(one, "bound") }.first

    # Over the best of the others, within each round.
    def over_best(above, others) = combine([above, *others], SECONDS) { |own, *theirs| own / theirs.min }

    # The median alone, where the table is wide.
    def brief(spread, digits = 2) = spread ? format("%.#{digits}f", spread.median) : "–"

    def heading(link, server) = "#{link} (#{ShapedLink.describe(link)}), #{Site::TITLES.fetch(server)}"
  end
end
