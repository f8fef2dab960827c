# frozen_string_literal: true

require "optparse"
require_relative "journal"
require_relative "machine"
require_relative "page"
require_relative "rounds"

module Bench
  # The command line of `bin/bench PAGE`, of all that is on a page (see {Suite}), and of `bin/bench SCENARIO`.
  class Command
    SCRATCH = File.expand_path("../../tmp/bench", __dir__)

    # @param name [String] a scenario, or the key of a suite: "all" (of the hub), "broker", …
    # @param arguments [Array<String>]
    # @return [Integer] the exit code
    def self.run(name, arguments) = new(name).run(arguments)

    def initialize(name)
      @name = name
      @suite = Suite::ALL[name]
      @classes = @suite ? @suite.scenarios : Scenario.all.select { |scenario| scenario.key == name }
      @suite_of_one = @classes.first&.suite
      @values = {}
      @with = []
      @words = []
    end

    # @param arguments [Array<String>]
    # @return [Integer]
    def run(arguments)
      @words = arguments.dup
      rest = parser.parse(arguments)
      raise OptionParser::InvalidArgument, rest.join(" ") unless rest.empty?
      raise OptionParser::InvalidArgument, "--with goes with --from" if @with.any? && !@from
      publish(@from ? earlier : measured)
    rescue OptionParser::ParseError, KeyError, Build::Failed => error
      warn "bench #{@name}: #{error.message} (see bin/bench #{@name} --help)"
      2
    end

    private

    # @return [Page]
    def measured
      named = @entrants&.map { |name| entrant_named(name) } # a mistake is told before anything is measured
      left_out = impossible.merge(absent)
      facts = facts_of(named || wanted.map { |name| Entrants.fetch(name) }) # before the runs: the tree may change meanwhile
      scenarios = @classes.map { |scenario| scenario.new(entrants: entrants_of(scenario) - left_out.keys, values: @values, quick: @quick) }
      facts = resumed(facts)
      rounds = Rounds.new(scenarios, @rounds || (@quick ? 1 : suite.rounds), journal: @journal) { |line| warn line }
      warn "#{rounds.size} runs#{", #{@journal.size} of them measured before" if @journal&.size&.positive?}"
      results = rounds.call
      Page.new(results, facts: facts, left_out: left_out,
        notes: {"command" => command_line, "rounds" => rounds.count, "interrupted" => rounds.interrupted?})
    end

    # Goes on from where the same command was interrupted.
    #
    # @return [Hash{String => String}] facts, as they were when that began
    def resumed(facts)
      return facts unless suite&.resumes
      identity = {"name" => @name, "words" => @words - %w[--check --anew], "commit" => facts["commit"]}
      @journal = Journal.new(SCRATCH, identity, anew: @anew)
      @journal.start(facts)
      @journal.size.zero? ? facts : @journal.facts.merge("continued" => facts["date"])
    end

    def facts_of(entrants) = Machine.facts(entrants).merge(@classes.map(&:versions).reduce({}, :merge))

    # Of the one scenario, too, when it cannot be measured here.
    def suite = @suite || @suite_of_one

    # @return [Entrant]
    # @raise [KeyError] there is none, or none of this kind
    def entrant_named(name)
      entrant = Entrants.fetch(name)
      return entrant if entrant.suites.include?(suite)
      raise KeyError, "#{name} has no part in this; there are #{Entrants.names(suite).join(", ")}"
    end

    # @return [Page]
    def earlier
      head, results, additions = Record.load(File.read(@from))
      apart = @with.map { |file| Addition.new(*Record.load(File.read(file)).first(2)) }
      Page.new(results, facts: head["machine"], left_out: head["left_out"], notes: head["notes"], additions: additions + apart)
    end

    def publish(page)
      puts page.tables
      target = directory(page)
      warn "Written: #{page.write(target).join(", ")}" if target
      @journal&.finish unless page.interrupted?
      (@check && !page.targets.all?(&:reached?)) ? 1 : 0
    end

    # What is short, partial or interrupted does not take the place of the results.
    def directory(page)
      return @out if @out
      return unless @suite
      File.join((@quick || @entrants || page.interrupted?) ? SCRATCH : Page::RESULTS, @suite.folder).chomp("/")
    end

    # Where it was written says nothing about what was measured.
    def command_line = ["bin/bench", @name, *@words].join(" ").sub(/ --out[ =]\S+/, "")

    def wanted = @classes.flat_map { |scenario| entrants_of(scenario) }.uniq

    def entrants_of(scenario)
      return @quick ? scenario.quick_entrants : scenario.entrants unless @entrants
      @suite ? scenario.entrants & @entrants : @entrants
    end

    # Takes out of what is to be measured what cannot be.
    #
    # @return [Hash{String => String}] which scenarios, and why
    def impossible
      why = @classes.to_h { |scenario| [scenario, scenario.obstacle] }.compact
      @classes -= why.keys
      why.each { |scenario, reason| warn "#{scenario.key} is not measured: #{reason}" }
      why.transform_keys(&:key)
    end

    # @return [Hash{String => String}] who cannot take part, and why
    def absent
      wanted.filter_map { |name|
        why = obstacle(Entrants.fetch(name))
        warn "#{name} does not take part: #{why}" if why
        [name, why] if why
      }.to_h
    end

    # @return [String, nil]
    def obstacle(entrant)
      entrant.prepare
      entrant.run { |server| entrant.stage(server).wake["whole"] ? nil : "its first messages went astray" }
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
        o.on("--rounds N", Integer, "rounds, each with every server in turn (#{suite.rounds})") { |n| @rounds = n }
        o.on("--entrants LIST", Array, "who takes part: #{Entrants.names(suite).join(", ")}") { |names| @entrants = names }
        o.on("--out DIR", "write the page there (of a whole page: bench/results; --quick or --entrants: tmp/bench; else nowhere)") { |dir| @out = dir }
        o.on("--from FILE", "make the page from the runs of an earlier results.json") { |file| @from = file }
        o.on("--with FILE", "with --from: add what was measured apart, of a results.json of its own; more than once for several") { |file| @with << file }
        o.on("--anew", "do not go on from where it was interrupted") { @anew = true } if suite&.resumes
        o.on("--check", "exit with 1 when a target is not reached") { @check = true }
        @classes.first.settings.each_value { |setting| add(o, setting) } unless @suite
      end
    end

    def banner
      return "usage: bin/bench #{@name} [options]\n\nMeasures everything, side by side, and writes it as one page.\n\n" if @suite
      scenario = @classes.first
      <<~TEXT
        usage: bin/bench #{@name} [options]

        #{scenario.title}. #{scenario.about}

        Takes part: #{scenario.entrants.join(", ")}

      TEXT
    end

    def add(parser, setting)
      sample = setting.default
      kind = sample.is_a?(Array) ? Array : sample.class
      flag = "--#{setting.name.to_s.tr("_", "-")} #{(kind == Array) ? "LIST" : "N"}"
      parser.on(flag, kind, "#{setting.about} (#{Array(sample).join(",")})") do |value|
        @values[setting.name] = (Array(sample).first.is_a?(Integer) && kind == Array) ? value.map { |one| Integer(one) } : value
      rescue ArgumentError
        raise OptionParser::InvalidArgument, value.join(",")
      end
    end
  end
end
