# frozen_string_literal: true

require "securerandom"
require "socket"
require_relative "client"
require_relative "proxy/clients"
require_relative "proxy/conversation"
require_relative "proxy/destination"
require_relative "proxy/fields"
require_relative "proxy/guard"
require_relative "proxy/prefetcher"
require_relative "proxy/pseudonym"
require_relative "proxy/visits"

module Hikyaku
  module HTTP
    # A proxy for one's own browser behind a slow, long link: GETs of http: URLs are pipelined to servers that take it, and what a page contains is fetched
    # before the browser asks. Everything else passes through as it is.
    #
    #     proxy = Hikyaku::HTTP::Proxy.new(port: 8080)
    #     proxy.run                       # until proxy.stop, in another thread or a signal's handler
    #
    # http://hikyaku.proxy/, asked for through it, shows what it does. Each message is written anew from what was understood of it (RFC 9110, section 7.6;
    # RFC 9112, section 11.2). It listens on the loopback, unless it is told another address and who may use it.
    class Proxy
      LOOPBACK = /\A(?:127(?:\.\d{1,3}){3}|::1|localhost)\z/
      MOST_CONNECTIONS = 256
      # What is fetched ahead is kept whole; what is larger is not.
      MOST_AHEAD_BYTES = 1_048_576
      PAGE_FIELDS = [["content-type", "text/html; charset=utf-8"], ["cache-control", "no-store"], ["content-security-policy", Report::POLICY],
        ["x-content-type-options", "nosniff"], ["referrer-policy", "no-referrer"]].freeze
      private_constant :LOOPBACK, :MOST_CONNECTIONS, :MOST_AHEAD_BYTES, :PAGE_FIELDS

      # @return [Guard, nil]
      # @api private
      attr_reader :guard
      # @return [Prefetcher]
      # @api private
      attr_reader :prefetcher
      # @return [Fields]
      # @api private
      attr_reader :fields
      # @return [Visits]
      # @api private
      attr_reader :visits
      # @return [Destination]
      # @api private
      attr_reader :destination
      # @return [Pseudonym, nil]
      # @api private
      attr_reader :pseudonym
      # @return [String]
      attr_reader :host
      # @return [Integer] where it listens
      attr_reader :port

      # @param host [String] an address of this machine
      # @param port [Integer] 0 for any that is free
      # @param users [Hash{String => String}] passwords by name; without any it listens on the loopback alone
      # @param allow [Array<String>] what may be reached beside the network at large: see {Destination}
      # @param ahead [Boolean] whether it pipelines and fetches ahead to begin with; its page can change that
      # @param all_fields [Boolean] whether every header field of the browser goes on with every request: see {Fields}
      # @param via [Boolean] whether it says in each message that it is there, as RFC 9110, section 7.6.3, asks of every proxy; without that it
      #   does not know requests that come back to it
      # @param memory [String, nil] see {Client#initialize}
      # @param report [#call, nil] takes a sentence about what went wrong inside
      # @raise [ConfigError, SystemCallError]
      def initialize(host: "127.0.0.1", port: 0, users: {}, allow: [], ahead: true, all_fields: false, via: true, memory: Client::Memory.default_path, report: nil)
        unless LOOPBACK.match?(host) || users.any?
          raise ConfigError, "the proxy would listen on #{host}, where others can reach it: say who may use it, or listen on 127.0.0.1"
        end
        @server = TCPServer.new(host, port)
        @host, @port = @server.addr.values_at(3, 1)
        @guard = users.any? ? Guard.new(users) : nil
        @destination = Destination.new(allow: allow, own: [[@host, @port]])
        @memory = Client::Memory.new(memory)
        @fields = Fields.new(@memory, all: all_fields)
        @prefetcher = Prefetcher.new(@fields)
        @pseudonym = via ? Pseudonym.new : nil
        @visits = Visits.new
        @pools = {true => pool(pipelining: true), false => pool(pipelining: false, cache: false)}
        @ahead = ahead
        @token = SecureRandom.urlsafe_base64(16)
        @report = report
        @threads = ThreadGroup.new
        @stopping, @stopper = IO.pipe
      end

      # Serves until {#stop}.
      #
      # @return [void]
      def run
        until @stopping.wait_readable(0)
          socket = accept or next
          serve(socket)
        end
      ensure
        [@server, @stopping, @stopper].each(&:close)
        @threads.list.each(&:kill)
        @prefetcher.close
        @pools.each_value(&:close)
        @memory.save
      end

      # May be called in a signal's handler.
      #
      # @return [void]
      def stop
        @stopper.write_nonblock(".", exception: false)
      rescue IOError
        nil # it has stopped
      end

      # @return [String]
      def url = "http://#{authority}"

      # @return [Boolean] whether it pipelines and fetches ahead
      # @api private
      def ahead? = @ahead

      # @return [Clients]
      # @api private
      def clients = @pools.fetch(@ahead)

      # @return [#call] see {Client#initialize}
      # @api private
      def destinations = @destination.method(:check)

      # The proxy's own page, and its one switch.
      #
      # @param request [Parser::Request]
      # @param body [String]
      # @return [Array(Reply, String)]
      # @api private
      def page(request, body)
        return Reply.plain(421, "this is a proxy: set it as one, and ask for http://#{Report::HOST}/", request) unless ours?(request)
        return switched(request, body) if request.method == "POST" && request.path == "/switch"
        return Reply.plain(404, "there is nothing here but http://#{Report::HOST}/", request) unless %w[GET HEAD].include?(request.method) && ["/", ""].include?(request.path)
        html = Report.new(@visits, explanations: clients.explanations, ahead: @ahead, token: @token).to_s.b
        [Reply.new(200, PAGE_FIELDS, request, length: html.bytesize), (request.method == "HEAD") ? "" : html]
      end

      # @return [String]
      def inspect = "#<#{self.class} #{url}>"

      private

      def authority = "#{@host.include?(":") ? "[#{@host}]" : @host}:#{@port}"

      def pool(**options)
        Clients.new(@memory, attended: true, max_redirects: 0, decode: false, user_agent: nil, proxy: nil, max_body_bytes: MOST_AHEAD_BYTES, destinations: destinations, **options)
      end

      # A page of somebody else's, whose name leads here, is not shown it.
      def ours?(request)
        name = request.authority.delete_suffix(":80")
        name.casecmp?(Report::HOST) || name == authority || name == "localhost:#{@port}"
      end

      def switched(request, body)
        token = body[/(?:\A|&)token=([\w-]+)/, 1].to_s
        return Reply.plain(403, "this form is not of the proxy's page: load the page again", request) unless OpenSSL.secure_compare(token, @token)
        @prefetcher.close
        @ahead = !@ahead
        [Reply.new(303, [["location", "/"]], request, length: 0), ""]
      end

      def accept
        IO.select([@server, @stopping])
        socket = @server.accept_nonblock(exception: false)
        return if socket == :wait_readable
        return socket if @threads.list.size < MOST_CONNECTIONS
        socket.close
        nil
      rescue SystemCallError # of a client that has gone, or when there are no descriptors left
        nil
      end

      def serve(socket)
        socket.setsockopt(:TCP, :NODELAY, 1)
        @threads.add(Thread.new { converse(socket) })
      end

      def converse(socket)
        Conversation.new(socket, self).run
      rescue => error
        @report&.call("#{error.class}: #{error.message}")
      end
    end
  end
end
