# frozen_string_literal: true

require "cgi/escape"
require "ipaddr"
require_relative "../hub/client_address"
require_relative "problem"

module Hikyaku
  class Web
    # What the hub reads of a request: the values that decide, and nothing else.
    #
    # A server that answers like requests by itself puts the key GRANT into the environment, and finds there what was
    # granted: a decision that holds for every request with the same values, those of Last-Event-ID aside.
    class Request
      # Where a server asks for the grant behind an answer.
      GRANT = "hikyaku.grant"
      FORM = %r{\Aapplication/x-www-form-urlencoded\s*(;|\z)}i
      private_constant :FORM

      # RFC 3986, section 3.2, without user information.
      HOST = /\A(?:\[[0-9A-Fa-f:.]+\]|[^\s,\/?#@\\\[\]:]*)(?::\d*)?\z/
      private_constant :HOST

      # Puma lets requests without Host pass, and joins several.
      #
      # RFC 9112, section 3.2.
      def self.check_host(env)
        return unless env.key?("puma.socket")
        host = env["HTTP_HOST"]
        return if host ? HOST.match?(host) : env["SERVER_PROTOCOL"] != "HTTP/1.1"
        raise Problem.new(400, "the request must have one field Host, of a host and perhaps a port")
      end

      def self.check_length(env, max_bytes)
        raise Problem.new(413, "the body is larger than max_request_bytes allows") if env["CONTENT_LENGTH"].to_i > max_bytes
      end

      attr_reader :env

      def initialize(env, trusted_proxies: [], max_fields: nil)
        @env = env
        @trusted_proxies = trusted_proxies
        @max_fields = max_fields
      end

      # Refuses what no endpoint takes, before anything of it is parsed.
      def check!(max_bytes: Float::INFINITY)
        Request.check_host(@env)
        Request.check_length(@env, max_bytes)
        path
        too_many_fields!(400, "query component") if too_many_fields?(query_string)
      end

      def method = @env["REQUEST_METHOD"]

      def path
        @path ||= begin
          path = "#{@env["SCRIPT_NAME"]}#{@env["PATH_INFO"]}".force_encoding(Encoding::UTF_8)
          check_path(path)
          (path.size > 1 && path.end_with?("/") && @env["PATH_INFO"] == "/" && @env["SCRIPT_NAME"] != "") ? path.chop : path
        end
      end

      def query_string = @env["QUERY_STRING"] || ""

      def query = @query ||= URLEncodedForm.parse(query_string)

      # Names and values of a form body.
      def form(limit:)
        unless FORM.match?(@env["CONTENT_TYPE"].to_s)
          raise Problem.new(400, "the body must be sent as application/x-www-form-urlencoded")
        end
        form = body(limit: limit)
        too_many_fields!(413, "body") if too_many_fields?(form)
        URLEncodedForm.parse(form)
      end

      def body(limit:)
        too_large!(limit) if @env["CONTENT_LENGTH"].to_i > limit
        input = @env["rack.input"] or return +""
        body = input.read(limit + 1) || +""
        too_large!(limit) if body.bytesize > limit
        body
      end

      def body? = @env["CONTENT_LENGTH"].to_i > 0 || @env.key?("HTTP_TRANSFER_ENCODING")

      def header(name) = @env[name]

      # Hands the grant behind the answer to a server that asks for it.
      def granted(grant = nil)
        @env[GRANT] = grant || yield if @env.key?(GRANT)
      end

      # The client's address: what the nearest proxies that are trusted say of it. A Unix socket has none.
      def address
        peer = @env["REMOTE_ADDR"]
        forwarded = @env["HTTP_X_FORWARDED_FOR"]
        return peer if forwarded.nil? || !trusted?(peer)
        forwarded.split(",").map(&:strip).reverse_each do |hop|
          peer = hop
          break unless trusted?(hop)
        end
        peer
      end

      private

      # RFC 3986, section 2.1.
      def check_path(path)
        raise Problem.new(400, "the path is not valid UTF-8") unless path.valid_encoding?
        raise Problem.new(400, "the path holds a percent sign without two hexadecimal digits") if path.include?("%") && URLEncodedForm.broken?(path)
      end

      def too_many_fields?(form) = !@max_fields.nil? && form.bytesize >= @max_fields && form.count("&") >= @max_fields

      def too_many_fields!(status, what)
        raise Problem.new(status, "the #{what} has more than #{@max_fields} fields")
      end

      def trusted?(address)
        return true if address.nil? || address.empty?
        Hub::ClientAddress.forms(address).any? { |ip| @trusted_proxies.any? { |range| range.family == ip.family && range.include?(ip) } }
      end

      def too_large!(limit)
        raise Problem.new(413, "the body is larger than the #{limit} bytes that max_request_bytes allows")
      end
    end

    # Parses `application/x-www-form-urlencoded`, of bodies and of query components alike.
    #
    # URL Living Standard, section "application/x-www-form-urlencoded parsing"; but what does not decode to UTF-8 is
    # left as it is, so that the caller can refuse it: Mercure draft-08 wants such values rejected, not repaired.
    module URLEncodedForm
      BROKEN = /%(?![0-9A-Fa-f]{2})/n
      private_constant :BROKEN

      module_function

      def parse(string)
        form = string.b
        form.tr!("+", " ") if form.include?("+")
        form.split("&").filter_map do |pair|
          next if pair.empty?
          sign = pair.index("=") || pair.bytesize
          [decoded(pair.byteslice(0, sign)), decoded(pair.byteslice(sign + 1, pair.bytesize) || +"")]
        end
      end

      # Percent-decodes, as in a path: a plus sign stays.
      def unescape(string) = decoded(string.b.gsub("+", "%2B"))

      # A segment of a path as text.
      def text(string)
        text = unescape(string)
        text if text.valid_encoding? && !text.include?("\0")
      end

      def broken?(string) = BROKEN.match?(string.b)

      # Takes a binary string that is nobody else's. CGI decodes in C, in time that grows with the length alone, whatever the string
      # holds, and leaves a broken escape as it is. It takes a plus sign for a space.
      def decoded(string)
        string = CGI.unescape(string, Encoding::BINARY) if string.include?("%")
        string.force_encoding(Encoding::UTF_8).freeze
      end

      private_class_method :decoded
    end

    # Puma reads a body before it calls the application, whatever its length. For the paths of a hub that is mounted in it, it
    # reads none that the hub would refuse: of a Content-Length that is too large nothing, of chunks no more than the limit. What
    # is a little too large is for the hub to refuse, with a problem; so is the request whose body was not read.
    module BodyLimit
      # Bytes that are read at least, so that most clients have sent all and see the answer.
      LEAST = 1_048_576
      @limits = {}.freeze
      @lock = Mutex.new
      private_constant :LEAST

      # Prepended to Puma::Client.
      module Client
        private

        def setup_body
          @hikyaku_other_limit = @http_content_length_limit unless defined?(@hikyaku_other_limit)
          limit = BodyLimit.of(@env)
          @http_content_length_limit = limit ? [limit, @hikyaku_other_limit].compact.min : @hikyaku_other_limit
          return super unless limit && !@env.key?("HTTP_TRANSFER_ENCODING") && BodyLimit.exceeds?(@env["CONTENT_LENGTH"], limit)
          @read_header = false
          @chunked_body = false
          @buffer = nil
          @body = self.class::EmptyBody
          # What follows is the body, and no request.
          @env["HTTP_CONNECTION"] = "close"
          set_ready
          true
        end
      end
      private_constant :Client

      class << self
        # Watches over a hub's paths from now on, where Puma is there.
        def watch(paths, max_request_bytes)
          return unless defined?(::Puma::Client) && ::Puma::Client.private_method_defined?(:setup_body) && ::Puma::Client.const_defined?(:EmptyBody)
          limit = hard(max_request_bytes)
          @lock.synchronize { @limits = @limits.merge(paths.to_h { |path| [path, [limit, @limits[path] || 0].max] }).freeze }
          ::Puma::Client.prepend(Client) unless ::Puma::Client.include?(Client)
        end

        def hard(max_request_bytes) = [2 * max_request_bytes, LEAST].max

        def of(env)
          path = env["REQUEST_PATH"] || env["REQUEST_URI"].to_s[%r{\A(?:[a-z]+://[^/?#]*)?([^?#]*)}i, 1]
          @limits.each { |own, limit| return limit if path.start_with?(own) && (path.bytesize == own.bytesize || path[own.size] == "/") }
          nil
        end

        def exceeds?(length, limit) = !length.nil? && length.match?(/\A\d+\z/) && length.to_i > limit
      end
    end
  end
end
