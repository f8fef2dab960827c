# frozen_string_literal: true

require_relative "refused"

module Hikyaku
  module HTTP
    class Proxy
      module Forwarding
        # A host and a port: a value. Only what is no more than that: names as DNS and browsers write them, addresses, IPv6 in brackets.
        class Authority
          HTTP = 80
          # Labels may have an underscore, as in practice they do.
          FORM = /\A(\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*\.?)(?::([0-9]{0,5}))?\z/n
          MOST_HOST = 255
          private_constant :FORM, :MOST_HOST

          def self.parse(text, port:)
            raise Refused.new(400, "the URL has user information, which is not passed on") if text.include?("@")
            host, digits = FORM.match(text)&.captures
            raise Refused.new(400, "the host of the URL is none") unless host && host.bytesize <= MOST_HOST
            number = digits.to_s.empty? ? port : digits.to_i
            raise Refused.new(400, "the port of the URL is none") unless number&.between?(1, 65_535)
            new(host.downcase, number)
          end

          attr_reader :host
          attr_reader :port

          def initialize(host, port)
            @host = -host
            @port = port
            freeze
          end

          def to_s = (@port == HTTP) ? @host : "#{@host}:#{@port}".b

          def inspect = "#<#{self.class} #{self}>"
        end
      end
    end
  end
end
