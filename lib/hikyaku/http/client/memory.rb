# frozen_string_literal: true

require "fileutils"
require "json"
require "monitor"
require_relative "../../support/clock"

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
        # What was written later than now was written by another clock.
        AHEAD = 60 # seconds
        MOST_KEY_BYTES = 1_000
        # How often the file is tried at last when another process holds it, and after how long again; what could not be written is kept for the next time.
        TRIES = 20
        BETWEEN = 0.01 # seconds
        private_constant :DAY, :MOST_ORIGINS, :MOST_BYTES, :VERSION, :PAUSE, :AHEAD, :MOST_KEY_BYTES, :TRIES, :BETWEEN

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
        def initialize(path, clock: Support::Clock::WALL)
          @path = path
          @clock = clock
          @lock = Monitor.new
          @origins = nil
          @changed = {}
          @written_at = -Float::INFINITY
        end

        # @param key [String] see {Route#key}
        # @return [Hash] of JSON's values; empty when nothing is known
        def read(key)
          @lock.synchronize do
            record = (@origins ||= load)[key]
            (record && current?(record)) ? record : {}
          end
        end

        # @param key [String]
        # @param record [Hash]
        # @return [void]
        def write(key, record)
          return if key.bytesize > MOST_KEY_BYTES
          @lock.synchronize do
            @origins ||= load
            record = record.merge("at" => @clock.call.round)
            [@origins, (@changed if @path)].compact.each { |known| put_last(known, key, record) }
            keep(1) if @path && (@clock.call - @written_at).abs > PAUSE
          end
        end

        # Writes what has changed to the disk, beside what other processes have learnt.
        #
        # @return [void]
        def save = @lock.synchronize { keep(TRIES) unless @path.nil? || @changed.empty? }

        private

        # The newest is the last.
        def put_last(known, key, record)
          known.delete(key)
          known[key] = record
          known.shift if known.size > MOST_ORIGINS
        end

        def keep(tries)
          @written_at = @clock.call
          FileUtils.mkdir_p(File.dirname(@path), mode: 0o700)
          File.open("#{@path}.lock", File::RDWR | File::CREAT, 0o600) do |lock|
            next unless locked?(lock, tries)
            put(load.merge(@changed))
            @changed = {}
          end
        rescue SystemCallError
          nil
        rescue JSON::JSONError, EncodingError # what cannot be written now never can
          @changed = {}
        end

        # Whoever drives is not to wait for other processes.
        def locked?(lock, tries)
          tries.times do |time|
            sleep(BETWEEN) if time.positive?
            return true if lock.flock(File::LOCK_EX | File::LOCK_NB)
          end
          false
        end

        def put(origins)
          newest = origins.max_by(MOST_ORIGINS) { |_, record| record["at"] }.to_h
          part = "#{@path}.#{Process.pid}"
          File.write(part, JSON.generate("version" => VERSION, "origins" => newest), perm: 0o600)
          File.rename(part, @path)
        end

        def load
          return {} if @path.nil? || !File.file?(@path) || File.size(@path) > MOST_BYTES
          text = File.read(@path, encoding: Encoding::UTF_8)
          return {} unless text.valid_encoding? # it is no JSON (RFC 8259, section 8.1), though some versions read it
          kept = JSON.parse(text)
          return {} unless kept.is_a?(Hash) && kept["version"] == VERSION && kept["origins"].is_a?(Hash)
          sound = kept["origins"].select { |key, record| writable?(key) && sound?(record) && current?(record) }
          sound.sort_by { |_, record| record["at"] }.last(MOST_ORIGINS).to_h
        rescue SystemCallError, JSON::ParserError, EncodingError
          {}
        end

        def current?(record)
          age = @clock.call - record["at"]
          age < DAY && age > -AHEAD
        end

        # Written by this program, as far as one can see: what is read is used as numbers.
        def sound?(record)
          return false unless record.is_a?(Hash) && record["at"].is_a?(Numeric) && writable?(record)
          verdict, link = record.values_at("verdict", "link")
          [verdict, link].all? { |part| part.nil? || part.is_a?(Hash) } && (verdict.nil? || [verdict["since"], verdict["scored_at"]].all?(Numeric)) &&
            [*verdict&.values_at("score", "most"), *link&.values].compact.all? { |value| value.is_a?(Numeric) && value.to_f.finite? }
        end

        # What JSON reads it may not write: 1e999 is infinite, and text may be no UTF-8. One such value would keep all others from being written.
        def writable?(value)
          case value
          when Hash then value.all? { |name, inner| writable?(name) && writable?(inner) }
          when Array then value.all? { |inner| writable?(inner) }
          when String then value.valid_encoding?
          when Float then value.finite?
          else true
          end
        end
      end
    end
  end
end
