# frozen_string_literal: true

require_relative "../client/event_source/parser"
require_relative "../support/clock"
require_relative "exchange"

module Hikyaku
  class Doctor
    # An event stream, with the time at which each event and each comment came.
    #
    # HTML standard, section "Server-sent events".
    class Stream < Exchange
      extend Support::Clock

      Arrival = Struct.new(:event, :at)
      COMMENT = /[\r\n]:/n
      # Arrivals and comments that are kept.
      MOST = 10_000
      private_constant :COMMENT, :MOST

      attr_reader :arrivals
      attr_reader :comments
      attr_reader :size

      # As Exchange.
      def initialize(*, **)
        @events = EventSource::Parser.new
        @arrivals = []
        @comments = []
        @size = 0
        @last = "\n".b
        super
      end

      # Reads several streams until the block is content or the time is over.
      def self.wait_all(streams, seconds)
        deadline = now + seconds
        loop do
          streams.each(&:pump)
          return true if yield
          open = streams.reject(&:ended)
          return false if open.empty? || (left = deadline - now) <= 0
          # What TLS has read already is not seen by select, so it does not wait long.
          IO.select(open.map(&:io), nil, nil, [left, 0.05].min)
        end
      end

      def stream? = status == 200 && type == "text/event-stream"

      def arrival(id) = @arrivals.find { |arrival| arrival.event.id == id }

      def retry = @events.retry

      def coded? = !["", "identity"].include?(self["content-encoding"].to_s.downcase)

      private

      def take(bytes)
        @size += bytes.bytesize
        super
        interpret(bytes) unless coded?
      rescue EventSource::EventTooLarge
        finish(:malformed)
      end

      # An answer that is no stream is kept as it is.
      def interpret(bytes)
        return unless stream?
        found = (@last + bytes).scan(COMMENT).size
        @comments.concat([last_byte_at] * found) if @comments.size < MOST
        @last = bytes.byteslice(-1)
        @events.feed(bytes) { |event| @arrivals << Arrival.new(event, last_byte_at) if @arrivals.size < MOST }
      end
    end
  end
end
