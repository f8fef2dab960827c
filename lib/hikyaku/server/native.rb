# frozen_string_literal: true

require "ipaddr"
require "rack/utils"
require_relative "log"
require_relative "open_files"
require_relative "../web/authorization"
require_relative "../web/problem"
require_relative "../web/request"

module Hikyaku
  class Server
    # The HTTP server of the native engine, seen from Ruby: the engine's loop accepts, parses, and answers whatever it
    # knows; what it does not, a few threads here ask the Rack application. Which subscribe or publish was granted goes back
    # to the engine, so that the next with the same values is answered without Ruby.
    class Native
      BROKEN = Web::Problem.new(500, "the hub made a mistake; its log says more")
      # Connections that are no streams, which an address may have however few streams it may have.
      LEAST_OF_ADDRESS = 64
      private_constant :BROKEN, :LEAST_OF_ADDRESS

      # A reactor for an application that brings none: it holds no hub.
      def self.reactor(config, logger)
        require_relative "../hub"
        require_relative "native_reactor"
        NativeReactor.new(Hub.new(hub_url: config.hub_url, engine: Hub::NativeEngine), write_timeout: config.write_timeout, logger: logger)
      end

      def initialize(app, reactor:, config:, logger:, listener:, files:)
        @app = app
        @reactor = reactor
        @logger = logger
        @listener = listener
        @threads = config.threads
        @errors = ErrorStream.new(logger)
        prepare(config, files)
      end

      # Listens, in threads of its own.
      def run
        @listener.sockets.each { |socket| @reactor.listen(socket) }
        workers = Array.new(@threads) { |number| Thread.new { work }.tap { |thread| thread.name = "hikyaku-web #{number + 1}" } }
        Thread.new { workers.each(&:join) }
      end

      # Accepts nothing more, answers what was read, and ends the streams. Does not wait for it.
      def stop
        @listener.close
        Thread.new { @reactor.stop }
      end

      private

      # What the engine must know to take requests, and what it leaves to the application to refuse.
      def prepare(config, files)
        @oversized_body = OversizedBody.new(config.max_request_bytes)
        cookies = [config.cookie_name, (Web::Authorization::LEGACY_COOKIE_NAME if config.legacy)].compact
        @reactor.take_requests(path: config.path, cookie_names: cookies, legacy: config.legacy, dates: true,
          counts_loopback: config.counts_loopback?, trusted_proxies: config.trusted_proxies.map { |range| IPAddr.new(range) },
          max_topics: config.max_topics, max_topic_bytes: config.max_topic_bytes, max_id_bytes: config.max_id_bytes,
          max_type_bytes: config.max_type_bytes, max_body_bytes: config.max_request_bytes, max_fields: config.max_fields, max_table_bytes: config.max_grant_bytes,
          max_connections: OpenFiles.for_connections(files), max_of_address: [config.max_connections_per_address, LEAST_OF_ADDRESS].max)
      end

      def work
        while (request = @reactor.next_request)
          answer(request)
        end
      end

      # Whatever goes wrong, the client gets an answer and the thread takes the next request.
      def answer(request)
        env = request.env
        env["rack.errors"] = @errors
        env[Web::Request::GRANT] = nil if request.key
        env["rack.input"] = @oversized_body if request.body_too_large?
        respond(request, env, *call(env))
      rescue Exception => error # standard:disable Lint/RescueException
        log(error)
        respond(request, env || {}, *BROKEN.response) unless request.answered?
      end

      def call(env)
        @app.call(env)
      rescue Web::Problem => problem
        problem.response
      end

      def respond(request, env, status, headers, body)
        response = Response.new(env, status, headers, keep_alive: request.keep_alive? && !request.body_too_large?)
        if (grant = env[Web::Request::GRANT])
          @reactor.remember(request, grant, head: response.template)
        end
        if body.respond_to?(:subscriber)
          @reactor.answer_stream(request, response.stream, body.subscriber)
        elsif body.respond_to?(:each)
          @reactor.answer(request, *response.whole(body), close: !response.keep_alive?)
        else
          give_away(request, response, body)
        end
      ensure
        body.close if body.respond_to?(:close) && !body.respond_to?(:subscriber)
      end

      # Rack 3: a body that is called writes to the connection itself.
      def give_away(request, response, body)
        head = response.stream
        socket = @reactor.answer_yourself(request) or return
        socket.write(head)
        body.call(socket)
      rescue IOError, SystemCallError
        nil # the client is gone
      end

      def log(error) = @logger.error("#{error.class}: #{error.message} (#{error.backtrace&.first})")

      # A Rack response as the bytes of an HTTP/1.x answer.
      #
      # RFC 9112, sections 4 to 6 and 9.
      class Response
        # Headers that say where a stream begins, and how it is changed: the engine, which knows, writes those of answers that it
        # gives itself.
        OF_ONE_STREAM = %w[mercure-last-event-id last-event-id hikyaku-stream].freeze
        # Statuses without content (RFC 9110, section 6.4.1).
        EMPTY = [204, 304].freeze
        STATUS_LINES = Hash.new do |lines, (version, status)|
          line = "#{version} #{status} #{Rack::Utils::HTTP_STATUS_CODES[status]}\r\n".freeze
          (lines.size < 200) ? lines[[version, status]] = line : line
        end
        # A header's value must end neither the header nor the head.
        FORBIDDEN = /[\r\n\0]/
        private_constant :OF_ONE_STREAM, :EMPTY, :STATUS_LINES, :FORBIDDEN

        def initialize(env, status, headers, keep_alive:)
          @version = (env["SERVER_PROTOCOL"] == "HTTP/1.0") ? "HTTP/1.0" : "HTTP/1.1"
          @status = status.to_i
          @headers = headers
          @head_only = env["REQUEST_METHOD"] == "HEAD"
          @keep_alive = keep_alive && !closing?
        end

        attr_reader :keep_alive
        alias_method :keep_alive?, :keep_alive

        # An answer whose content is known. What HEAD does not ask for is not made.
        def whole(body)
          content = join(body) unless @head_only && !body.is_a?(Array)
          head = lines(@headers)
          head << "connection: close\r\n" if !@keep_alive && !closing? && @version == "HTTP/1.1"
          head << "connection: keep-alive\r\n" if @keep_alive && @version == "HTTP/1.0"
          head << "content-length: #{content.bytesize}\r\n" unless empty? || content.nil? || @headers.key?("content-length")
          [head << "\r\n", (@head_only || empty?) ? "" : content]
        end

        # The head of an answer whose end is the end of the connection.
        def stream
          head = lines(@headers)
          head << "connection: close\r\n" unless closing? || @version == "HTTP/1.0"
          head << "\r\n"
        end

        # What every answer of its kind begins with, for the engine to complete: without the date, a stream's without the
        # cursor and the capability, a publish's without the length; without the empty line.
        def template = lines(@headers.except(*OF_ONE_STREAM, "date", "content-length"))

        private

        def closing? = @headers["connection"].to_s.casecmp?("close")

        def empty? = EMPTY.include?(@status) || @status < 200

        def lines(headers)
          head = +STATUS_LINES[[@version, @status]]
          headers.each do |name, values|
            next if name.start_with?("rack.")
            Array(values).each do |value|
              head << name << ": " << value.to_s << "\r\n" unless FORBIDDEN.match?(value.to_s)
            end
          end
          head.force_encoding(Encoding::BINARY)
        end

        def join(body)
          content = +"".b
          body.each { |part| content << part.b }
          content
        end
      end

      # The input of a request whose body was too large to be kept. To take it for empty would be to answer another
      # request: whoever reads it is told, and the client with him.
      class OversizedBody
        def initialize(limit)
          @limit = limit
        end

        def read(*) = raise(Web::Problem.new(413, "the body is larger than the #{@limit} bytes that max_request_bytes allows"))
        alias_method :gets, :read
        alias_method :each, :read

        def close = nil
      end
    end
  end
end
