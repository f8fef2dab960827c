# frozen_string_literal: true

require_relative "inflation"

module Hikyaku
  module HTTP
    module ContentCoding
      # The coding gzip: members one after the other.
      #
      #     start ──┬─► member ──► between ──┬─► member …
      #             └─► plain                └─► garbage
      #
      # What does not begin as gzip is passed on as it is: some servers label so what is not. What follows the last member is passed over.
      #
      # RFC 9110, section 8.4.1.3; RFC 1952.
      class Gzip
        MAGIC = "\x1F\x8B".b.freeze
        WITH_HEAD = Zlib::MAX_WBITS + 16
        private_constant :MAGIC, :WITH_HEAD

        def self.available? = true

        def initialize
          @state = :start
          @held = String.new(encoding: Encoding::BINARY)
        end

        def step(bytes)
          return [bytes, nil] if @state == :plain
          step, rest = Inflation.cut(bytes)
          out = String.new(encoding: Encoding::BINARY)
          step = send(@state, step, out) until step.empty?
          [out, rest]
        end

        def complete? = @state != :member && !(@state == :start && !@held.empty?)

        def mislabelled? = @state == :plain

        private

        # Each takes what has come, adds to what comes out, and gives what it leaves.

        def start(step, _out) = opened(step, otherwise: :plain)

        def between(step, _out) = opened(step, otherwise: :garbage)

        def member(step, out)
          decoded, rest = @inflation.decode(step)
          out << decoded
          @state = :between if @inflation.finished?
          rest
        end

        def plain(step, out)
          out << step
          ""
        end

        def garbage(_step, _out) = ""

        def opened(step, otherwise:)
          @held << step
          return "" if @held.bytesize < MAGIC.bytesize && MAGIC.start_with?(@held)
          @state = @held.start_with?(MAGIC) ? :member : otherwise
          @inflation = Inflation.new(WITH_HEAD) if @state == :member
          @held.dup.tap { @held.clear }
        end
      end
    end
  end
end
