# frozen_string_literal: true

require_relative "../../support/hop_by_hop"
require_relative "../../web/problem"

module Hikyaku
  class Server
    class Relay
      # A request as the hub is to read it: made again from a Rack environment, so that nothing in it can pass for
      # another line or another request.
      class Request
        # What a header's name is made of (RFC 9110, section 5.6.2), as far as CGI leaves it.
        NAME = /\AHTTP_([A-Z0-9!#$%&'*+.^_`|~-]+)\z/
        # What no part of a request line, and what no header's value may hold.
        UNFIT_TARGET = /[\x00-\x20\x7f]/n
        UNFIT_VALUE = /[\x00-\x08\x0a-\x1f\x7f]/n
        METHOD = /\A[A-Z][A-Z-]{0,31}\z/
        # Those that the next message says anew. Rack knows HTTP_VERSION.
        NOT_PASSED = [*Support::HopByHop::FIELDS, "expect", "content-length", "version"].freeze
        STREAMED = %w[GET QUERY].freeze
        private_constant :NAME, :UNFIT_TARGET, :UNFIT_VALUE, :METHOD, :NOT_PASSED, :STREAMED

        def self.path(env)
          name, rest = env.values_at("SCRIPT_NAME", "PATH_INFO").map(&:to_s)
          (rest == "/" && !name.empty?) ? name : "#{name}#{rest}"
        end

        def initialize(env, limit:)
          @env = env
          @limit = limit
        end

        def method = @method ||= fit(@env["REQUEST_METHOD"], METHOD, "method")

        def streamed? = STREAMED.include?(method)

        def target
          @target ||= begin
            path = Request.path(@env).dup.force_encoding(Encoding::UTF_8)
            raise Web::Problem.new(400, "the path is not valid UTF-8") unless path.valid_encoding?
            query = @env["QUERY_STRING"].to_s
            target = "#{path}#{"?" unless query.empty?}".b << query.b
            raise Web::Problem.new(400, "the path or the query holds bytes that no URL has") if !target.start_with?("/") || UNFIT_TARGET.match?(target)
            # Puma lets pass what a URL should have encoded; the hub reads it alike.
            target.gsub(/[\x80-\xff]/n) { |byte| format("%%%02X", byte.ord) }
          end
        end

        def headers(address = nil)
          named = Support::HopByHop.named([@env["HTTP_CONNECTION"].to_s])
          found = @env.filter_map do |key, value|
            name = key[NAME, 1]&.downcase&.tr("_", "-") or next
            [name, checked(value)] unless NOT_PASSED.include?(name) || named.include?(name)
          end
          found << ["content-type", checked(@env["CONTENT_TYPE"])] unless @env["CONTENT_TYPE"].to_s.empty?
          # The nearest hop stands last.
          found << ["x-forwarded-for", checked([@env["HTTP_X_FORWARDED_FOR"], address].compact.join(", "))] if address
          found.to_h
        end

        def body = @body ||= @env["rack.input"]&.read(@limit) || ""

        def bytes(address = nil)
          lines = headers(address).map { |name, value| "#{name}: ".b << value << "\r\n" }
          lines << "content-length: #{body.bytesize}\r\n" unless body.empty?
          "#{method} ".b << target << " #{version}\r\n" << lines.join << "connection: close\r\n\r\n" << body.b
        end

        private

        def version = (@env["SERVER_PROTOCOL"] == "HTTP/1.0") ? "HTTP/1.0" : "HTTP/1.1"

        def checked(value)
          value = value.to_s.b
          raise Web::Problem.new(400, "a header holds bytes that no header has") if UNFIT_VALUE.match?(value)
          value
        end

        def fit(text, pattern, what)
          raise Web::Problem.new(400, "the request's #{what} cannot be understood") unless pattern.match?(text.to_s)
          text
        end
      end
    end
  end
end
