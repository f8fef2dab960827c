# frozen_string_literal: true

require_relative "framing"
require_relative "head"
require_relative "malformed"

module Hikyaku
  module HTTP
    class Parser
      # The head of a response.
      class Response < Head
        # @return [Integer] 100 to 999
        attr_reader :status
        # @return [String] may be empty
        attr_reader :reason

        # @return [Array<Array(String, String)>] names in lower case, and values, in order
        attr_reader :fields
        # @return [Integer] of the head
        attr_reader :bytes

        # What the reader in C has made out.
        #
        # @api private
        def self.told(parts) = allocate.tap { |response| response.send(:tell, *parts) }

        # @api private
        def initialize(line, headers, bytes, request_method:)
          tunnel = request_method == "CONNECT" && line.status / 100 == 2
          super(tunnel ? headers : Framing.one_length(headers), line.minor)
          @fields = @headers.map { |name, value| [-name.downcase, value].freeze }.freeze
          @bytes = bytes
          @status = line.status
          @reason = line.reason
          @upgrade = status == 101 || tunnel
          framing = tunnel ? Framing.new(:none) : framing_of_answer(request_method)
          framed(framing)
          @keep_alive = persistent? && framing.kind != :until_close && !doubtful?
          freeze
        end

        # @return [Array<Array(String, String)>] see {Head#headers}
        def headers = @headers || @names.zip(@fields).map { |name, field| [name, field.last].freeze }.freeze

        # @param name [String] of a field, in any case
        # @return [String, nil] see {Head#[]}
        def [](name) = @fields.assoc(name.downcase)&.last

        # @param name [String] of a field, in any case
        # @return [Array<String>] see {Head#values}
        def values(name)
          name = name.downcase
          @fields.filter_map { |field| field.last if field.first == name }
        end

        # @return [String] without what may be secret
        def inspect = "#<#{self.class} #{status} #{headers.map(&:first).join(" ")}>"

        # @return [Boolean] whether the response itself is still to come, to the same request
        def interim? = status / 100 == 1 && status != 101

        # @api private
        def ends_http? = upgrade?

        private

        # A 204 has no body, whatever its fields say; but who says how it is sent may send one: nothing that follows is believed.
        def doubtful? = status == 204 && !@upgrade && !self["transfer-encoding"].nil?

        # In the order in which ext/hikyaku/binding/rb_head.c says it.
        def tell(status, reason, minor, names, fields, framing, content_length, keep_alive, upgrade, bytes)
          @status = status
          @reason = reason
          @minor = minor
          @headers = nil
          @names = names
          @fields = fields
          @framing = framing
          @content_length = content_length
          @keep_alive = keep_alive
          @upgrade = upgrade
          @bytes = bytes
          freeze
        end

        # RFC 9112, section 6.3.
        def framing_of_answer(request_method)
          raise Malformed.new(:upgrade_missing) if status == 101 && !names_upgrade?
          framing = (status / 100 == 1) ? Framing.of(headers, minor) : Framing.of_answer(headers, minor)
          if status / 100 == 1 || status == 204
            raise Malformed.new(:body_forbidden) if framing.body? && !(status == 204 && framing.kind == :chunked)
            return Framing.new(:none)
          end
          return Framing.new(:none) if status == 304 || request_method == "HEAD"
          (framing.kind == :none) ? Framing.new(:until_close) : framing
        end
      end
    end
  end
end
