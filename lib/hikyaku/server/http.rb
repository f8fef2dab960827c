# frozen_string_literal: true

require "json"
require "puma"
require "puma/server"
require "rack/utils"
require_relative "../support/clock"
require_relative "puma_timeouts"
require_relative "date_header"
require_relative "http/client"
require_relative "http/connection_limit"
require_relative "open_files"
require_relative "puma_log"

module Hikyaku
  class Server
    # Puma, set up for a hub: few threads, the method QUERY, errors as problem+json, sockets that were opened elsewhere.
    class Http < Puma::Server
      include Support::Clock

      # RFC-to-be QUERY beside what Puma knows; the hub itself answers 405 to those that it does not want.
      METHODS = (Puma::Const::SUPPORTED_HTTP_METHODS + %w[QUERY]).uniq.freeze
      SECONDS = {
        # For a request's head, and for a body to catch up with its pace.
        first_data_timeout: 10,
        # Between two requests of one connection.
        persistent_timeout: 20,
        # For requests that are being answered when the process stops.
        force_shutdown_after: 5,
        pool_shutdown_grace_time: 1
      }.freeze
      DETAILS = {
        400 => "the request is not understood",
        408 => "the request took too long to arrive",
        413 => "the body is larger than max_request_bytes allows",
        414 => "the request's target is longer than any that is needed",
        431 => "a part of the request is larger than any that is needed",
        501 => "the request's method or transfer coding is not known here",
        503 => "the hub is stopping",
        505 => "the version is neither HTTP/1.0 nor HTTP/1.1"
      }.freeze
      DETAILS_OTHER = "the hub made a mistake; its log says more"
      # What is said to a client that may still be sending, and the bytes and seconds for which it may go on: without, closing the socket would take
      # the answer away again (RFC 9112, section 9.6).
      TOO_LARGE = [413, 414, 431].freeze
      LINGER = {bytes: 4_194_304, seconds: 1.0}.freeze
      private_constant :METHODS, :SECONDS, :DETAILS, :DETAILS_OTHER, :TOO_LARGE, :LINGER

      def initialize(app, logger:, listener:, threads:, max_request_bytes:, files: Process.getrlimit(:NOFILE).first)
        @logger = logger
        PumaTimeouts.install(logger)
        @connection_limit = ConnectionLimit.new(OpenFiles.for_connections(files), logger: logger) { @reactor }
        super(app, nil, {
          min_threads: threads, max_threads: threads, environment: "production", log_writer: PumaLog.new(logger),
          # What is a little too large is for the application to refuse, with its own headers.
          supported_http_methods: METHODS, http_content_length_limit: 2 * max_request_bytes, max_keep_alive: 100_000,
          lowlevel_error_handler: ->(_error, _env, status) { problem(status) }, **SECONDS
        })
        listener.sockets.each { |socket| adopt(socket) }
      end

      private

      # Answers are small and leave in one write: to hold them back with TCP_CORK, and to ask the kernel first whether the
      # client is still there, are four system calls for each publish.
      def cork_socket(_socket) = nil

      def uncork_socket(_socket) = nil

      def closed_socket?(socket) = socket.closed?

      # As Puma makes its clients.
      def new_client(io, socket)
        Client.new(io, binder.env(socket)).tap do |client|
          client.pool = @thread_pool
          client.listener = socket
          client.env_set_http_version = @env_set_http_version
          client.http_content_length_limit = @http_content_length_limit
          client.supported_http_methods = @supported_http_methods
        end
      end

      def adopt(socket)
        @connection_limit.watch(socket)
        binder.ios << socket
        # Who comes through a Unix socket has no address; Puma would ask the socket in vain.
        binder.envs[socket] = binder.proto_env.merge("REMOTE_ADDR" => nil) if socket.is_a?(UNIXServer)
      end

      # RFC 9457.
      def problem(status)
        body = JSON.generate(type: "about:blank", title: Rack::Utils::HTTP_STATUS_CODES[status], status: status, detail: DETAILS.fetch(status, DETAILS_OTHER))
        [status, {"content-type" => "application/problem+json", "cache-control" => "no-store", "date" => DateHeader.now, **Web::Problem::NOSNIFF}, [body]]
      end

      # Puma has a text of its own for 413.
      def response_to_error(client, requests, error, status)
        prepare_response(*lowlevel_error(error, client.env, status), requests, client)
        linger(client.io) if TOO_LARGE.include?(status)
      end

      def linger(socket)
        socket.close_write
        deadline = now + LINGER[:seconds]
        left = LINGER[:bytes]
        while left > 0 && (wait = deadline - now) > 0 && socket.wait_readable(wait)
          bytes = socket.read_nonblock(65_536, exception: false)
          break if bytes.nil?
          left -= bytes.bytesize unless bytes == :wait_readable
        end
      rescue IOError, SystemCallError
        nil
      end
    end
  end
end
