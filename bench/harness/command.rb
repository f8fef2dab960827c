# frozen_string_literal: true

require "etc"
require "open3"
require "optparse"
require_relative "page"
require_relative "rounds"

module Bench
  # The command line of `bin/bench PAGE` (see {Suite}) and of `bin/bench SCENARIO`.
  class Command
    ROOT = File.expand_path("../..", __dir__)
    SCRATCH = File.join(ROOT, "tmp/bench")

    # @return [Integer] the exit status
    def self.run(name, arguments) = new(name).run(arguments)

    def initialize(name)
      @name = name
      @page = Suite::ALL[name]
      @classes = @page ? @page.scenarios : [Scenario.fetch(name)]
      @suite = @page || @classes.first.suite
      @values = {}
      @from = []
    end

    def run(arguments)
      @words = arguments.dup
      rest = parser.parse(arguments)
      raise OptionParser::InvalidArgument, rest.join(" ") unless rest.empty?
      publish(Page.new(@from.any? ? @from.flat_map { |file| Part.load(File.read(file)) } : [measured]))
    rescue OptionParser::ParseError, KeyError, Build::Failed, SystemCallError => error
      warn "bench #{@name}: #{error.message} (see bin/bench #{@name} --help)"
      2
    end

    private

    def measured
      named = @entrants&.map { |name| entrant_named(name) } # report a mistake before anything is measured
      left_out = obstacles
      left_out.each { |scenario, reason| warn "#{scenario.key} is not measured: #{reason}" }
      @classes -= left_out.keys
      left_out = left_out.transform_keys(&:key).merge(absent)
      machine = facts(named || wanted.map { |name| Entrants.fetch(name) }) # before the runs: the tree may change meanwhile
      scenarios = @classes.map { |scenario| scenario.new(entrants: entrants_of(scenario) - left_out.keys, values: @values, quick: @quick) }
      machine = continued(machine)
      rounds = Rounds.new(scenarios, @rounds || (@quick ? 1 : @suite.rounds), journal: @journal) { |line| warn line }
      warn "#{rounds.size} runs#{", #{@journal.size} of them measured before" if @journal.size.positive?}"
      rounds.call
      command = ["bin/bench", @name, *@words].join(" ").sub(/ --out[ =]\S+/, "")
      Part.new({"page" => @suite.key, "command" => command, "rounds" => rounds.count, "interrupted" => rounds.interrupted?, "machine" => machine,
                "left_out" => left_out}, scenarios)
    end

    # Continues where the same command was interrupted.
    def continued(machine)
      @journal = Journal.new(SCRATCH, {"name" => @name, "words" => @words - %w[--check --restart], "commit" => machine["commit"]}, restart: @restart)
      @journal.start(machine)
      @journal.size.zero? ? machine : @journal.machine.merge("continued" => machine["date"])
    end

    # What is needed to read a figure: the code, and the machine.
    def facts(entrants)
      commit = output("git", "-C", ROOT, "rev-parse", "--short", "HEAD").strip
      changed = !output("git", "-C", ROOT, "status", "--porcelain", "--", "lib", "exe", "ext").strip.empty?
      cpu = File.exist?("/proc/cpuinfo") && File.read("/proc/cpuinfo")[/^model name\s*: (.+)$/, 1]
      versions = [*entrants, *@classes].map(&:versions).reduce({}, :merge)
      {"commit" => changed ? "#{commit} and uncommitted changes" : commit, "date" => Time.now.utc.strftime("%Y-%m-%d %H:%M UTC"), "cpu" => cpu || "unknown",
       "cores" => Etc.nprocessors.to_s, "kernel" => Etc.uname.values_at(:sysname, :release, :machine).join(" "),
       "compiler" => output(ENV.fetch("CC", "cc"), "--version").lines.first.to_s.strip, "ruby" => RUBY_DESCRIPTION,
       "puma" => Gem.loaded_specs["puma"]&.version.to_s, **versions}
    end

    def output(*command)
      Open3.capture2e(*command).first
    rescue SystemCallError
      "unknown"
    end

    def entrant_named(name)
      entrant = Entrants.fetch(name)
      return entrant if entrant.suites.include?(@suite.key)
      raise KeyError, "#{name} has no part in this; there are #{Entrants.names(@suite).join(", ")}"
    end

    def publish(page)
      puts page.tables
      target = directory(page)
      warn "Written: #{page.write(target).join(", ")}" if target
      @journal&.finish unless page.interrupted?
      (@check && !page.targets.all?(&:reached?)) ? 1 : 0
    end

    # A short, partial or interrupted measurement does not replace the committed results.
    def directory(page)
      return @out if @out || @page.nil?
      File.join((@quick || @entrants || page.interrupted?) ? SCRATCH : Page::RESULTS, @page.folder).chomp("/")
    end

    def wanted = @classes.flat_map { |scenario| entrants_of(scenario) }.uniq

    def entrants_of(scenario)
      return @quick ? scenario.quick_entrants : scenario.entrants unless @entrants
      @page ? scenario.entrants & @entrants : @entrants
    end

    # Scenarios that cannot be measured here, and why.
    def obstacles = @classes.to_h { |scenario| [scenario, scenario.obstacle] }.compact

    # Entrants that cannot take part, and why.
    def absent
      wanted.to_h { |name| [name, obstacle(Entrants.fetch(name))] }.compact.each { |name, why| warn "#{name} does not take part: #{why}" }
    end

    def obstacle(entrant)
      entrant.prepare
      entrant.run { |server| entrant.stage(server).wake["whole"] ? nil : "its first messages were lost" }
    rescue Build::Failed
      raise
    rescue Server::Failed => error
      error.reason
    rescue => error
      error.message.lines.first.strip
    end

    def parser
      OptionParser.new do |o|
        o.banner = banner
        o.on("--quick", "a short look: small numbers, one round") { @quick = true }
        o.on("--rounds N", Integer, "rounds, each with every entrant in turn (#{@suite.rounds})") { |n| @rounds = n }
        o.on("--entrants LIST", Array, "the entrants: #{Entrants.names(@suite).join(", ")}") { |names| @entrants = names }
        o.on("--out DIR", "write the page there (default of a page: bench/results; with --quick or --entrants: tmp/bench)") { |dir| @out = dir }
        o.on("--from FILE", "make the page from an earlier results.jsonl; repeatable: further files are shown as measured apart") { |file| @from << file }
        o.on("--restart", "do not continue an interrupted measurement") { @restart = true }
        o.on("--check", "exit with 1 when a target is not reached") { @check = true }
        @classes.first.settings.each_value { |setting| add(o, setting) } unless @page
      end
    end

    def banner
      text = "usage: bin/bench #{@name} [options]\n\n"
      return "#{text}Measures all scenarios of the page \"#{@page.title}\".\n\n" if @page
      "#{text}#{@classes.first.title}. #{@classes.first.about}\n\nEntrants: #{@classes.first.entrants.join(", ")}\n\n"
    end

    def add(parser, setting)
      sample = setting.default
      kind = sample.is_a?(Array) ? Array : sample.class
      parser.on("--#{setting.name.to_s.tr("_", "-")} #{(kind == Array) ? "LIST" : "N"}", kind, "#{setting.about} (#{Array(sample).join(",")})") do |value|
        @values[setting.name] = (Array(sample).first.is_a?(Integer) && kind == Array) ? value.map { |one| Integer(one) } : value
      rescue ArgumentError
        raise OptionParser::InvalidArgument, value.join(",")
      end
    end
  end
end
