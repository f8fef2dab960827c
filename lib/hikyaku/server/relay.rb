# frozen_string_literal: true

require "socket"
require_relative "sidecar/folder"
require_relative "handover"
require_relative "puma_timeouts"
require_relative "../web/request"
require_relative "../web/change"
require_relative "../web/metadata"
require_relative "../web/problem"
require_relative "../support/hop_by_hop"
require_relative "../support/clock"
require_relative "../http/parser"
require_relative "../client/publisher/endpoint"
require_relative "../client/publisher/pool"

module Hikyaku
  class Server
    # Stands for the hub in Puma's workers, when `plugin :hikyaku` runs the hub beside them. As middleware,
    #
    #     use Hikyaku::Server::Relay      # config.ru
    #     run MyApp
    #
    # it takes the requests for the hub's paths and lets the others pass; `run Hikyaku::Server::Relay.new` answers nothing else.
    #
    # A subscribe's connection is handed to the hub's process, with the request: the worker has no more to do with it. All else is
    # asked of the hub over its Unix socket. Where there is no raw socket to hand over (TLS in Puma, another server), and to a hub that
    # takes none (the engine in Ruby), the stream is given on as it comes.
    #
    # The hub's process decides everything by itself; here nobody is let in or kept out.
    class Relay
      # Ends the streams that this process gives on as they come: its server is about to stop, and would wait for them.
      #
      # @return [void]
      def self.shutdown = Stream.close_all

      # @param app [#call, nil] the application behind
      # @param folder [Sidecar::Folder, nil] where the hub is; what the environment names unless given
      def initialize(app = nil, folder: nil)
        @app = app
        @folder = folder
        @lock = Mutex.new
        PumaTimeouts.install(nil)
      end

      # @param env [Hash] a Rack environment
      # @return [Array(Integer, Hash, #each)] a Rack response
      # @raise [ConfigError] `plugin :hikyaku` does not run
      def call(env)
        path = Request.path(env)
        return relay(env, path) if mine?(path)
        @app ? @app.call(env) : Web::Problem.new(404, "there is nothing at this address").response
      rescue HubUnavailable => away
        away.response_to(env)
      rescue Web::Problem => problem
        problem.response
      end

      # @param path [String]
      # @return [Boolean] whether it belongs to the hub
      # @raise [ConfigError] `plugin :hikyaku` does not run
      def serves?(path) = path == hub.path || path.start_with?("#{hub.path}/") || path == hub.metadata_path

      # @return [String]
      def inspect = "#<#{self.class.name}#{" #{@folder.path}" if @folder}>"

      # What is known of the hub.
      Hub = Struct.new(:path, :metadata_path, :max_request_bytes, :socket, :sender, :exchange, keyword_init: true)
      private_constant :Hub

      private

      # A hub of which nothing is known has no path: the application goes on without it.
      def mine?(path)
        serves?(path)
      rescue Sidecar::Absent
        raise HubUnavailable unless @app
      end

      def hub = @hub || @lock.synchronize { @hub ||= find }

      def find
        @folder ||= Sidecar::Folder.named or
          raise ConfigError, "Hikyaku::Server::Relay stands for a hub beside Puma, and there is none: add `plugin :hikyaku` to config/puma.rb"
        about = @folder.about
        # Whose metadata it is: as much as says where it stands.
        known = Struct.new(:resource_identifier, :hub_url, :cookie_name, :subscriptions).new(*about.values_at(:resource_identifier, :hub_url))
        metadata_path = Web::Metadata.new(known).path
        Web::BodyLimit.watch([about[:path], metadata_path], about[:max_request_bytes])
        Hub.new(path: about[:path], metadata_path: metadata_path, max_request_bytes: about[:max_request_bytes], socket: @folder.socket,
          sender: (Handover::Sender.new(@folder.handover) unless about[:handover] == false), exchange: HubConnection.new(@folder.socket))
      end

      def relay(env, path)
        Web::Request.check_host(env)
        # Its body was not read, so the hub could not tell.
        Web::Request.check_length(env, Web::BodyLimit.hard(hub.max_request_bytes))
        client = env["puma.socket"]
        request = Request.new(env, limit: hub.max_request_bytes + 1)
        return hub.exchange.call(request, address(env, client), harmless: change?(path)) unless path == hub.path && request.streamed?
        (hand_over(env, client, request) if hub.sender && client.is_a?(BasicSocket) && env["rack.hijack"]) ||
          Stream.new(hub.socket, request.bytes(address(env, client))).response(env)
      end

      # A stream that is changed twice to the same is as if it were once.
      def change?(path) = path.start_with?("#{hub.path}#{Web::Change::ROOT}")

      # @return [Array, nil] what no server looks at any more; nil: the request is too large for that
      def hand_over(env, socket, request)
        bytes = request.bytes(other_address(env, socket))
        return if bytes.bytesize > Handover::MAX_REQUEST_BYTES
        raise HubUnavailable unless hub.sender.call(socket, bytes)
        env["rack.hijack"].call
        # Never shut down: it is the hub's now.
        socket.close
        [200, {}, []]
      end

      # What the hub, which believes whoever asks over its Unix socket, is to take for the client's address. Who comes through a
      # Unix socket has none, whatever the server calls it.
      def address(env, client) = client.is_a?(UNIXSocket) ? nil : env["REMOTE_ADDR"]

      # The hub asks a connection itself where it comes from. Here the server may know better (`set_remote_address`).
      def other_address(env, socket)
        return if socket.is_a?(UNIXSocket)
        peer = socket.remote_address.ip_address.delete_prefix("::ffff:")
        env["REMOTE_ADDR"] unless env["REMOTE_ADDR"] == peer
      rescue SystemCallError
        nil # the client is gone already
      end

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

      # An answer of the hub's that is given on as it comes, until either side ends it: for servers that do not give their socket away,
      # and for a hub that takes none over. A raw socket is carried by a thread of its own, so that none of the server's is held; for
      # anything else it holds what the server gives a response, a thread or a fibre.
      class Stream
        include Support::Clock

        CHUNK = 65_536
        # For the head of the answer.
        SECONDS = 30
        EVENTS = %r{\A(?:text/event-stream|application/vnd\.msgpack)(?![^;\s])}i
        private_constant :CHUNK, :SECONDS, :EVENTS

        @open = {}
        @lock = Mutex.new

        class << self
          # Ends all that are open in this process: a server that stops would wait for them.
          def close_all = @lock.synchronize { @open.keys }.each(&:interrupt)

          def enter(stream) = @lock.synchronize { @open[stream] = true }

          def leave(stream) = @lock.synchronize { @open.delete(stream) }
        end

        def initialize(path, bytes)
          @socket = UNIXSocket.new(path)
          @socket.write(bytes)
          @parser = HTTP::Parser.new(:response)
          @head = head
        rescue SystemCallError, IOError, HTTP::Parser::Malformed
          @socket&.close
          raise HubUnavailable
        end

        def response(env)
          headers = @head.headers.group_by { |name, _| name.downcase }.except(*Support::HopByHop::FIELDS)
            .transform_values { |fields| fields.map { |_, value| value.dup.force_encoding(Encoding::UTF_8) }.then { |values| values.one? ? values.first : values } }
          # Puma forgets a socket after the call; other servers close theirs.
          @owned = env.key?("puma.socket")
          return [@head.status, headers, [rest]] unless @head.status == 200 && EVENTS.match?(headers["content-type"].to_s)
          headers["connection"] = "close" if env["SERVER_PROTOCOL"].to_s.start_with?("HTTP/1")
          [@head.status, headers, self]
        end

        # Gives on what comes, until either side has ended; from a raw socket it returns at once.
        def call(stream)
          @called = true
          return carry(stream) unless stream.is_a?(BasicSocket)
          socket = @owned ? stream : stream.dup
          Thread.new { carry(socket) }.name = "hikyaku-stream"
        end

        # The server is done with the response. The stream is not, once it was called.
        def close
          @socket.close unless @called
        end

        def interrupt
          @socket.shutdown
        rescue IOError, SystemCallError
          nil
        end

        private

        def carry(stream)
          Stream.enter(self)
          while (part = body)
            stream.write(part)
            stream.flush if stream.respond_to?(:flush)
          end
        rescue IOError, SystemCallError, HTTP::Parser::Malformed
          nil # the client is gone, or the hub
        ensure
          Stream.leave(self)
          @socket.close
          finish(stream)
        end

        # The server may keep a descriptor of its own, and the client is to see the end all the same.
        def finish(stream)
          stream.shutdown if stream.is_a?(BasicSocket)
        rescue IOError, SystemCallError
          nil
        ensure
          stream.close if stream.respond_to?(:close)
        end

        def head
          deadline = now + SECONDS
          until (head = @parser.next).is_a?(HTTP::Parser::Response) && !head.interim?
            next if head
            wait = deadline - now
            raise IOError, "the hub does not answer" unless wait.positive? && @socket.wait_readable(wait)
            @parser << @socket.readpartial(CHUNK)
          end
          head
        end

        def body
          loop do
            part = @parser.next
            return (part == :end) ? nil : part if part
            read
          end
        end

        def read
          @parser << @socket.readpartial(CHUNK)
        rescue EOFError
          @parser.close
        end

        def rest
          whole = +"".b
          while (part = body)
            whole << part
          end
          whole
        ensure
          @socket.close
        end
      end

      # Asks the hub's process, over connections that are kept, and gives its answer on. Thread-safe; may be used in a forked
      # child.
      class HubConnection
        TIMEOUTS = {open_timeout: 5, read_timeout: 30, write_timeout: 10}.freeze
        POOL = {size: 5, keep_alive: 10}.freeze
        # Done twice is done once (RFC 9110, section 9.2.2).
        REPEATABLE = %w[GET HEAD OPTIONS QUERY DELETE PUT].freeze
        UNCERTAIN = "the hub gave no answer: what was asked for may have been done or not"
        # No array: of an empty one servers would say how long it is.
        NOTHING = [].each.freeze
        private_constant :TIMEOUTS, :POOL, :REPEATABLE, :UNCERTAIN, :NOTHING

        # Net::HTTP asks for compression, names itself, and takes any body for a form, unless it is told otherwise.
        class Message < Net::HTTPGenericRequest
          def initialize(request, headers)
            super(request.method, !request.body.empty?, request.method != "HEAD", request.target, {"accept-encoding" => "identity", "host" => "localhost"}.merge(headers))
            %w[accept user-agent accept-encoding].each { |name| delete(name) unless headers.key?(name) }
            self.body = request.body unless request.body.empty?
          end

          private

          def supply_default_content_type
          end
        end
        private_constant :Message

        def initialize(socket)
          endpoint = Publisher::Endpoint.new("unix:#{socket}", **TIMEOUTS)
          @pool = Publisher::Pool.new(**POOL) { endpoint.connection }
        end

        def call(request, address, harmless: false)
          message = Message.new(request, request.headers(address))
          repeated = false
          begin
            ask(message)
          rescue *Publisher::Endpoint::NETWORK_ERRORS
            raise Web::Problem.new(502, UNCERTAIN) unless harmless || REPEATABLE.include?(request.method)
            raise HubUnavailable if repeated
            repeated = true
            retry
          end
        end

        private

        def ask(message)
          connection = connect
          response = connection.request(message)
          kept = connection.open?
          answer(response)
        ensure
          kept ? @pool.give_back(connection) : connection&.discard
        end

        def connect
          @pool.take
        rescue *Publisher::Endpoint::NETWORK_ERRORS
          raise HubUnavailable
        end

        def answer(response)
          headers = response.to_hash.except(*Support::HopByHop::FIELDS).transform_values { |values| values.one? ? values.first : values }
          body = response.body
          [response.code.to_i, headers, body ? [body] : NOTHING]
        end
      end

      # The hub's process is not there, for a moment: nothing was asked of it.
      class HubUnavailable < Web::Problem
        EVENTS = "text/event-stream"
        # Milliseconds after which a subscriber comes back: not all at once.
        RETRY = (1000..4000)
        private_constant :EVENTS, :RETRY

        def initialize
          super(503, "the hub is away for a moment; try again in a second", headers: {"retry-after" => "1"})
        end

        # An EventSource that is answered 503 gives up for good: it gets a stream, which ends and says when to come back. There is
        # nothing in it to protect from pages of other origins.
        def response_to(env)
          return response unless env["REQUEST_METHOD"] == "GET" && env["HTTP_ACCEPT"].to_s.include?(EVENTS)
          headers = {"content-type" => EVENTS, "cache-control" => "no-store", "x-accel-buffering" => "no", **Web::Problem::NOSNIFF}
          origin = env["HTTP_ORIGIN"]
          headers.update("access-control-allow-origin" => origin, "access-control-allow-credentials" => "true", "vary" => "origin") if origin
          [200, headers, ["retry: #{rand(RETRY)}\n\n"]]
        end
      end
    end
  end
end
