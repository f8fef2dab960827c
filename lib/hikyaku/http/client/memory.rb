# frozen_string_literal: true

require "fileutils"
require "json"
require "monitor"

module Hikyaku
  module HTTP
    class Client
      # What is known of origins, for a day, in a file that several processes may share: their verdicts, and the links to them. No secrets, no paths.
      #
      # A file that is broken or cannot be written costs what it knew, and nothing else. Any thread may use it.
      class Memory
        DAY = 86_400
        MOST_ORIGINS = 500
        MOST_BYTES = 1_000_000
        VERSION = 1
        # Not more often than that: a page or two may be forgotten.
        PAUSE = 5.0 # seconds
        private_constant :DAY, :MOST_ORIGINS, :MOST_BYTES, :VERSION, :PAUSE

        # @return [String] the file that is used unless another is named: below $XDG_CACHE_HOME, or ~/.cache
        def self.default_path
          base = ENV["XDG_CACHE_HOME"].to_s
          base = File.join(Dir.home, ".cache") unless base.start_with?("/")
          File.join(base, "hikyaku", "origins.json")
        rescue ArgumentError # there is no home
          nil
        end

        # @param path [String, nil] nil: what is known is forgotten with the client
        # @param clock [#call] seconds of the wall clock
        def initialize(path, clock: -> { Process.clock_gettime(Process::CLOCK_REALTIME) })
          @path = path
          @clock = clock
          @lock = Monitor.new
          @origins = nil
          @changed = {}
          @written_at = -Float::INFINITY
        end

        # @param key [String] see {Route#key}
        # @return [Hash] of JSON's values; empty when nothing is known
        def read(key) = @lock.synchronize { (@origins ||= load)[key] || {} }

        # @param key [String]
        # @param record [Hash]
        # @return [void]
        def write(key, record)
          @lock.synchronize do
            @origins ||= load
            @changed[key] = @origins[key] = record.merge("at" => @clock.call.round)
            save if @clock.call - @written_at > PAUSE
          end
        end

        # Writes what has changed to the disk, beside what other processes have learnt.
        #
        # @return [void]
        def save = @lock.synchronize { keep unless @path.nil? || @changed.empty? }

        private

        def keep
          @written_at = @clock.call
          FileUtils.mkdir_p(File.dirname(@path), mode: 0o700)
          File.open("#{@path}.lock", File::RDWR | File::CREAT, 0o600) do |lock|
            lock.flock(File::LOCK_EX)
            put(load.merge(@changed))
          end
          @changed = {}
        rescue SystemCallError
          nil
        end

        def put(origins)
          newest = origins.max_by(MOST_ORIGINS) { |_, record| record["at"] }.to_h
          part = "#{@path}.#{Process.pid}"
          File.write(part, JSON.generate("version" => VERSION, "origins" => newest), perm: 0o600)
          File.rename(part, @path)
        end

        def load
          return {} if @path.nil? || !File.file?(@path) || File.size(@path) > MOST_BYTES
          kept = JSON.parse(File.read(@path))
          return {} unless kept.is_a?(Hash) && kept["version"] == VERSION && kept["origins"].is_a?(Hash)
          limit = @clock.call - DAY
          kept["origins"].select { |_, record| sound?(record) && record["at"] > limit }
        rescue SystemCallError, JSON::ParserError, EncodingError
          {}
        end

        # Written by this program, as far as one can see: what is read is used as numbers.
        def sound?(record)
          return false unless record.is_a?(Hash) && record["at"].is_a?(Numeric)
          verdict, link = record.values_at("verdict", "link")
          [verdict, link].all? { |part| part.nil? || part.is_a?(Hash) } && (verdict.nil? || [verdict["since"], verdict["scored_at"]].all?(Numeric)) &&
            [*verdict&.values_at("score", "most"), *link&.values].compact.all? { |value| value.is_a?(Numeric) && value.to_f.finite? }
        end
      end
    end
  end
end
