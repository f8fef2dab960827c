# frozen_string_literal: true

require "json"
require_relative "errors"
require_relative "retries"

module Hikyaku
  class Publisher
    # What a hub answered to a publish, and what follows from it.
    class Answer
      # The hub is ours: a request with the same Idempotency-Key is not published again. The value stands for the
      # memory of keys; after a restart it may be another.
      MARKER = "hikyaku-idempotency"
      MAX_ID_BYTES = 4096
      # Of the statuses from 500 on, those that say that nothing was done. With the others a gateway answers in the hub's
      # place, or a hub failed in the middle.
      NOTHING_DONE = [501, 503, 505].freeze
      private_constant :MAX_ID_BYTES, :NOTHING_DONE

      def initialize(response, body, whole:)
        @status = Integer(response.code, 10)
        @type = response["content-type"].to_s[/\A[^;]*/].strip.downcase
        @location = response["location"]
        @retry_after = Retries.seconds(response["retry-after"])
        @body = body.dup.force_encoding(Encoding::UTF_8).scrub
        @whole = whole
      end

      def success? = @status.between?(200, 299) && event_id?

      def event_id = @body.chomp.then { |id| id.empty? ? nil : id }

      def disconnected
        count = document["disconnected"] if @status == 200
        count if count.is_a?(Integer)
      end

      def failure(endpoint, hint: nil)
        kind = who_knows? ? OutcomeUnknown : Refused
        message = sentence(endpoint)
        message += "; #{hint}" if hint && @status == 401
        kind.new(message, status: @status, problem: problem, retry_after: @retry_after)
      end

      private

      # A web application that answers 200 to anything must not pass for a hub.
      def event_id?
        id = @body.chomp
        @whole && id.bytesize <= MAX_ID_BYTES && !id.match?(/[\r\n]/) && !id.lstrip.start_with?("<")
      end

      def who_knows? = @status >= 500 && !NOTHING_DONE.include?(@status)

      # Mercure draft-08, section "Error Responses"; RFC 9457.
      def problem = success? ? {} : document

      def document
        return {} unless @whole && @type.match?(/[\/+]json\z/)
        parsed = JSON.parse(@body)
        parsed.is_a?(Hash) ? parsed : {}
      rescue JSON::ParserError
        {}
      end

      def sentence(endpoint)
        return "#{endpoint} answered #{@status}: the update may have been published or not" if who_knows?
        why = problem["detail"] || problem["title"]
        case @status
        when 200..299 then "#{endpoint} answered #{@status} with something that is not a hub's answer: is this the hub's URL?"
        when 300..399 then "#{endpoint} answered #{@status} and leads to #{@location.inspect}: publish there if you trust it"
        else "#{endpoint} refused the update with #{@status}#{": #{why}" if why.is_a?(String)}"
        end
      end
    end
  end
end
