# frozen_string_literal: true

require "digest"
require "fileutils"
require "json"
require_relative "results"

module Bench
  # What an interrupted measurement has come to, so that the next goes on from there: a file with one run a line, each written when
  # it has ended. It holds for the same command and the same code only. Runs that failed or lost something are not taken over: the
  # interrupt may have been why.
  class Journal
    # @param folder [String] of the journals
    # @param identity [Hash{String => Object}] what must be the same: "name", the command, the commit
    # @param anew [Boolean] as if there were none
    def initialize(folder, identity, anew: false)
      @identity = JSON.parse(JSON.generate(identity))
      @path = File.join(folder, "#{@identity.fetch("name")}-#{Digest::SHA256.hexdigest(JSON.generate(@identity))[0, 12]}.jsonl")
      @runs = {}
      read unless anew
    end

    # @return [String]
    attr_reader :path

    # @return [Hash{String => String}, nil] of the machine, as the measurement that was interrupted found them
    attr_reader :facts

    # @return [Integer] of runs that were measured before
    def size = @runs.size

    # @param facts [Hash{String => String}]
    # @return [void]
    def start(facts)
      return append("") if @facts # the last line may be there in part only
      @facts = facts
      FileUtils.mkdir_p(File.dirname(@path))
      File.write(@path, "")
      append(JSON.generate({"identity" => @identity, "facts" => facts}))
    end

    # @param scenario [Scenario]
    # @param cell [Cell]
    # @param round [Integer]
    # @return [Run, nil]
    def find(scenario, cell, round) = @runs[[scenario.class.key, cell, round]]

    # @param scenario [Scenario]
    # @param run [Run]
    # @return [void]
    def add(scenario, run)
      append(JSON.generate({"scenario" => scenario.class.key, **run.to_h})) if run.whole?
    end

    # All was measured, and what came out is elsewhere.
    #
    # @return [void]
    def finish = FileUtils.rm_f(@path)

    private

    def append(line) = File.write(@path, "#{line}\n", mode: "a")

    def read
      head, *lines = File.readlines(@path)
      head = JSON.parse(head.to_s)
      return unless head["identity"] == @identity
      @facts = head["facts"]
      lines.each { |line| take(line) }
    rescue Errno::ENOENT, JSON::ParserError # there is none, or none that can be read
      nil
    end

    def take(line)
      hash = JSON.parse(line)
      run = Run.of(hash)
      @runs[[hash.fetch("scenario"), run.cell, run.round]] = run
    rescue JSON::ParserError
      nil
    end
  end
end
