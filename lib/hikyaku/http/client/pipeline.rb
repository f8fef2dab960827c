# frozen_string_literal: true

require "socket"
require_relative "../parser"
require_relative "response_matcher"

module Hikyaku
  module HTTP
    class Client
      # The requests that were written to one connection and not answered yet, and the answers that come for them: bytes in, calls out, no sockets.
      #
      # RFC 9112, section 9.3.2: answers come in the order of the requests. One that is not final (1xx) does not count.
      class Pipeline
        # An answer that does not seem to belong to its request, or to any.
        class Doubtful < StandardError
          attr_reader :surplus
          alias_method :surplus?, :surplus

          def initialize(message, surplus: false)
            @surplus = surplus
            super(message)
          end
        end

        # A request that came behind others is refused as servers refuse what they cannot read: it may be because of that.
        class Balked < StandardError
        end

        # The server closes a connection that was idle, and has crossed the request (RFC 9110, section 15.5.9).
        class IdleTimeout < StandardError
        end

        # Nobody wants the rest of an answer, and it is long.
        class Unwanted < StandardError
        end

        # Statuses of servers that could not read a request, or would not wait for it.
        BALKS = [400, 408, 501, 505].freeze
        MOST_INTERIM = 16 # answers that are none, before one that is
        REMEMBERED = 64 # exchanges that were answered, to tell mixed up answers by
        WORTH_READING = 65_536 # bytes of an answer that nobody wants any more
        WORTH_WAITING = 1.0 # seconds for the rest of an answer of which its head was all that was wanted
        private_constant :WORTH_READING, :WORTH_WAITING, :MOST_INTERIM, :REMEMBERED

        attr_reader :unanswered
        attr_reader :answered

        def initialize(tags: nil, **limits)
          @parser = Parser.new(:response, **limits)
          @tags = tags
          @unanswered = []
          @batch = []
          @answered = @answered_of_batch = @batch_size = @interim = @bytes = 0
          @response = @last_status = @head_since = nil
          @last = @over = false
        end

        def push(exchange)
          if @unanswered.empty?
            @batch.clear
            @answered_of_batch = @batch_size = 0
          end
          @batch << exchange
          @batch_size += 1
          @unanswered << exchange
        end

        attr_reader :response

        def came_of_response = @bytes

        def begun? = !@response.nil? || !@parser.idle?

        def last? = @last

        def over? = @over || (@last && @unanswered.empty?)

        def midway? = @unanswered.any? && @answered_of_batch.positive?

        attr_reader :batch_size
        attr_reader :last_status

        def bytes_to_come(mean)
          all = @unanswered.sum { |exchange| exchange.expected_bytes(mean) }
          return all unless @response
          first = @unanswered.first.expected_bytes(mean)
          all - first + [(@response.content_length || first) - @bytes, 0].max
        end

        def bytes_of(chosen, mean)
          coming, others = chosen.partition { |exchange| @response && exchange.equal?(@unanswered.first) }
          others.sum { |exchange| exchange.expected_bytes(mean) } + (coming.empty? ? 0 : rest_of_response(mean))
        end

        def receive(bytes, now, &block)
          check_wanted
          @parser << bytes
          drain(now, &block)
          return @unanswered.first.listener.unfinished if @response
          @head_since = (@head_since || now unless @parser.idle?)
        end

        # When the other side has had all its time, though something comes: for a head, or for what is left of an answer whose head was all that was wanted.
        def ends_by(head_seconds)
          return @head_since + head_seconds if @head_since
          exchange = @unanswered.first
          exchange.begun_at + WORTH_WAITING if @response && exchange.led_elsewhere?
        end

        def head_late?(seconds, now) = !@head_since.nil? && now >= @head_since + seconds

        # What came of a head before nothing was read for a while was not slow.
        def resumed(now)
          @head_since &&= now
        end

        # Nothing more comes.
        def close(now, &block)
          @parser.close
          drain(now, &block)
        end

        def give_up
          @unanswered.tap { @unanswered = [] }
        end

        # All but the one whose turn it is.
        def give_up_tail
          @last = true
          @unanswered.slice!(1..) || []
        end

        private

        def rest_of_response(mean) = @response.content_length ? [@response.content_length - @bytes, 0].max : [mean - @bytes, @bytes].max

        def check_wanted
          raise Doubtful.new("something came when nothing was asked", surplus: true) if @unanswered.empty?
        end

        def drain(now, &block)
          loop do
            @parser.request_method = @unanswered.first.request.method if !@response && @unanswered.any?
            part = @parser.next or return
            case part
            when String then came(part)
            when :end then ended(now, &block)
            else began(part, now, &block)
            end
            return if @over
            next unless @unanswered.empty?
            check_wanted unless @last || @parser.idle?
            return
          end
        end

        def began(response, now)
          @head_since = nil
          exchange = @unanswered.first
          return interim(response) if response.interim?
          raise Doubtful, "it switches protocols, and nobody asked for that" if response.status == 101
          doubt = ResponseMatcher.doubt(exchange, response, @batch, tags: @tags)
          raise Doubtful, doubt if doubt
          known_by(exchange, response) if @tags && response.status == 200
          raise Balked if BALKS.include?(response.status) && exchange.pipelined? && @answered.positive? && @batch_size > 1
          raise IdleTimeout if response.status == 408 && !response.keep_alive? && @answered.positive? && exchange.request.idempotent?
          @response = response
          @bytes = response.bytes
          exchange.begun_at ||= now
          yield :head, exchange, response, 0
          exchange.listener.answered(response)
        end

        def known_by(exchange, response)
          tag = response["etag"]
          @tags.note(exchange.request.address.url, tag) if tag
        end

        def came(piece)
          @bytes += piece.bytesize
          exchange = @unanswered.first
          exchange.listener.came(piece)
          raise Unwanted if exchange.canceled? && long_yet?(exchange)
        end

        # Less is sooner read than a connection opened. Of a redirect it is likely that it is short, of what was given up that it is long.
        def long_yet?(exchange)
          return @response.content_length - @bytes > WORTH_READING if @response.content_length
          !exchange.led_elsewhere? || @bytes > WORTH_READING
        end

        # Its end comes next.
        def interim(response)
          @interim += 1
          raise Doubtful, "there are more than #{MOST_INTERIM} interim answers to one request" if @interim > MOST_INTERIM
          @unanswered.first.listener.interim(response)
        end

        def ended(now)
          return unless @response # an interim one
          response, exchange = @response, @unanswered.shift
          @response = nil
          @interim = 0
          @answered += 1
          @answered_of_batch += 1
          @last_status = response.status
          @batch.shift if @answered_of_batch > REMEMBERED
          # RFC 9112, section 9.6: what was asked after it was not looked at, and what comes after it is no answer.
          @last = @over = true unless response.keep_alive?
          exchange.listener.finished(now - exchange.sent_at)
          yield :end, exchange, response, @bytes
        end
      end

      # What comes on one connection: read as far as there is something, and given to the pipeline.
      class ResponseReader
        READ_BYTES = 65_536
        READS = 16 # at once: others want their turn
        QUICK = Socket.const_defined?(:TCP_QUICKACK) ? Socket::TCP_QUICKACK : nil
        private_constant :READ_BYTES, :READS, :QUICK

        def initialize(pipeline, halted:, tell:)
          @pipeline = pipeline
          @halted = halted
          @tell = tell.to_proc
          @buffer = String.new(capacity: READ_BYTES, encoding: Encoding::BINARY)
        end

        def read(io, now)
          READS.times do
            bytes = io.read_nonblock(READ_BYTES, @buffer, exception: false)
            return if bytes.is_a?(Symbol)
            return ended(now) if bytes.nil?
            yield bytes.bytesize
            cause = receive(bytes, now)
            return cause if cause || @halted.call
            return if bytes.bytesize < READ_BYTES && io.is_a?(BasicSocket) # nothing more was there
          end
          nil
        end

        # Has the kernel confirm what came now, and not in up to 40 ms (RFC 1122, section 4.2.3.2): a server may keep its next small packet back until then
        # (Nagle's algorithm, RFC 9293, section 3.7.4). It is forgotten with each packet, so it is to be said again. Linux alone can.
        def acknowledge(io) = (io.to_io.setsockopt(Socket::IPPROTO_TCP, QUICK, 1) if QUICK)

        private

        def receive(bytes, now)
          @pipeline.receive(bytes, now, &@tell)
          [:last, nil] if @pipeline.over?
        rescue Pipeline::Doubtful => error
          [error.surplus? ? :surplus : :doubtful, error]
        rescue Pipeline::Balked
          [:balked, nil]
        rescue Pipeline::IdleTimeout
          [:closed, nil]
        rescue Pipeline::Unwanted
          [:unwanted, nil]
        rescue Parser::Malformed => error
          [:corrupt, error]
        end

        def ended(now)
          @pipeline.close(now, &@tell)
          [:closed, nil]
        rescue Parser::Malformed => error
          [(error.reason == :truncated) ? :closed : :corrupt, error]
        rescue Pipeline::Doubtful => error
          [:doubtful, error]
        end
      end
    end
  end
end
