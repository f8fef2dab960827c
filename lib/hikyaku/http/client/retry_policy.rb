# frozen_string_literal: true

require_relative "../cache/http_date"
require_relative "../errors"
require_relative "settings"

module Hikyaku
  module HTTP
    class Client
      # What becomes of the requests that were unanswered when their connection broke off. RFC 9112, section 9.3.1: they are asked again, unless
      # one may have been heard, and asking it twice is not as asking it once.
      class RetryPolicy
        # The server did not look at what it left unanswered, or nobody wants what it answers.
        HARMLESS = %i[last unwanted].freeze
        UNUSABLE = %i[doubtful corrupt].freeze
        private_constant :HARMLESS, :UNUSABLE

        def initialize(route, &enqueue)
          @route = route
          @enqueue = enqueue
        end

        def after(connection, cause, error, unanswered)
          unanswered.reject!(&:canceled?) unless cause == :timeout
          return if unanswered.empty?
          unanswered.each(&:solitary!) if UNUSABLE.include?(cause)
          first, *rest = unanswered
          rest.each(&@enqueue)
          one_more?(cause, first) ? @enqueue.call(first) : first.listener.failed(broken(cause, error, first))
        end

        private

        # Of the one whose turn it was.
        def one_more?(cause, exchange)
          case cause
          when :balked then by_itself(exchange)
          when :timeout, :body then false
          else
            return true if HARMLESS.include?(cause) && exchange.request.idempotent?
            # On a connection of its own, where nothing that others do has it asked for a third time.
            exchange.solitary!
            exchange.tried!
            exchange.again?
          end
        end

        def by_itself(exchange)
          exchange.solitary!
          exchange.suspected = :balked
          true
        end

        def broken(cause, error, exchange)
          url = exchange.request.address.url
          case cause
          when :body then error
          when :timeout then TimedOut.new(error.message, phase: error.phase, url: url)
          when *UNUSABLE then BadResponse.new("the answer to #{url} cannot be used: #{error.message}", url: url)
          else ConnectionLost.new("#{@route} broke off the connection before the answer to #{url} was whole#{": #{error.message}" if error}#{ClientCertificate.advice(error)}", url: url)
          end
        end
      end

      # Whether an answer asks for patience, and for how much of it: RFC 9110, sections 10.2.3 (Retry-After), 15.5.9 and 15.6.4, and RFC 6585, section 4.
      module RetryAfter
        STATUSES = [408, 429, 503].freeze
        SECONDS = /\A\d+\z/
        MOST_DIGITS = 9 # more are longer than anybody waits
        # Where the server does not say for how long: twice as long each time, and clients that were refused together do not come back together.
        FIRST = 0.5 # seconds
        SPREAD = 0.5..1.0
        private_constant :STATUSES, :SECONDS, :MOST_DIGITS, :FIRST, :SPREAD

        class << self
          def possible?(request, status) = STATUSES.include?(status) && request.idempotent?

          def wait(headers, before:, most:, wall:)
            said = said(headers, wall)
            return [FIRST * 2**before * rand(SPREAD), most].min unless said
            said if said <= most
          end

          private

          # A date is that of the server's clock, and so is the field Date beside it.
          def said(headers, wall)
            value = headers.assoc("retry-after")&.last.to_s
            return seconds(value) if value.match?(SECONDS)
            date = Cache::HttpDate.parse(value, now: wall) or return
            [date - (Cache::HttpDate.parse(headers.assoc("date")&.last, now: wall) || wall), 0].max
          end

          def seconds(digits)
            digits = digits.sub(/\A0+/, "")
            (digits.size > MOST_DIGITS) ? Float::INFINITY : digits.to_i
          end
        end
      end
    end
  end
end
