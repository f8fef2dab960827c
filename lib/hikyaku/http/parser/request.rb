# frozen_string_literal: true

require_relative "field"
require_relative "framing"
require_relative "head"
require_relative "malformed"
require_relative "target"

module Hikyaku
  module HTTP
    class Parser
      # The head of a request.
      class Request < Head
        # @return [String] as it was sent: methods are case-sensitive
        attr_reader :method
        # @return [String] the host, with its port if there is one: of the target, or else of the field Host; empty where neither is
        attr_reader :authority

        # @api private
        def initialize(line, headers)
          super(headers, line.minor)
          @method = line.method
          @target = line.target
          host = checked_host
          @authority = @target.authority || host || ""
          framing = Framing.of(headers, minor)
          raise Malformed.new(:body_forbidden) if method == "CONNECT" && framing.body?
          framed(framing)
          @keep_alive = persistent?
          @upgrade = names_upgrade?
          @expect_continue = minor == 1 && framing.body? && values("expect").any? { |value| value.casecmp?("100-continue") }
          freeze
        end

        # @return [String] without what may be secret
        def inspect = "#<#{self.class} #{method} #{headers.map(&:first).join(" ")}>"

        # @return [String] as it was sent, binary: no space, no control characters, no "#"
        def target = @target.text

        # @return [Symbol] of the target: :origin, :absolute, :authority or :asterisk
        def form = @target.form

        # @return [String] of the target, not decoded; empty where it has none
        def path = @target.path

        # @return [String, nil] of the target, after the "?", not decoded
        def query = @target.query

        # @return [Boolean] whether the client waits for 100 (Continue) before it sends the body
        def expect_continue? = @expect_continue

        # @api private
        def ends_http? = method == "CONNECT"

        private

        # RFC 9112, section 3.2: empty where the target has no authority.
        def checked_host
          hosts = values("host")
          raise Malformed.new(:host_repeated) if hosts.size > 1
          raise Malformed.new(:host_missing) if hosts.empty? && minor == 1
          raise Malformed.new(:host) unless hosts.all? { |host| host.empty? || Target.authority?(host) }
          hosts.first
        end
      end
    end
  end
end
