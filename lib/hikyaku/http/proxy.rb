# frozen_string_literal: true

require "socket"
require_relative "client"
require_relative "proxy/account"
require_relative "proxy/conversation"
require_relative "proxy/destination"
require_relative "proxy/ending"
require_relative "proxy/fields"
require_relative "proxy/guard"
require_relative "proxy/pseudonym"
require_relative "proxy/shortage"
require_relative "proxy/strangers"
require_relative "proxy/turned_away"
require_relative "proxy/watch"

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
      MOST_STRANGERS = 32
      # Of a server, seconds: before its answer, and in the middle of one.
      PATIENCE = 300
      LONGEST_PAUSE = 60
      # Until there may be descriptors again, seconds.
      RESPITE = 0.25
      # Seconds in which connections end on which nothing is running.
      IN_A_MOMENT = 0.2
      FULL = "there are too many connections: try again soon"
      PAGE_FIELDS = [["content-type", "text/html; charset=utf-8"], ["cache-control", "no-store"], ["content-security-policy", Report::POLICY],
        ["x-content-type-options", "nosniff"], ["referrer-policy", "no-referrer"]].freeze
      private_constant :LOOPBACK, :MOST_CONNECTIONS, :MOST_STRANGERS, :PATIENCE, :LONGEST_PAUSE, :RESPITE, :IN_A_MOMENT, :FULL, :PAGE_FIELDS

      attr_reader :guard
      attr_reader :fields
      attr_reader :destination
      attr_reader :pseudonym
      attr_reader :patience
      attr_reader :host
      attr_reader :port

      def initialize(host: "127.0.0.1", port: 0, users: {}, allow: [], ahead: true, all_fields: false, via: true, memory: Client::Memory.default_path,
        patience: PATIENCE, max_connections: MOST_CONNECTIONS, report: nil)
        unless LOOPBACK.match?(host) || users.any?
          raise ConfigError, "the proxy would listen on #{host}, where others can reach it: say who may use it, or listen on 127.0.0.1"
        end
        @server = TCPServer.new(host, port)
        @host, @port = @server.addr.values_at(3, 1)
        @guard = users.any? ? Guard.new(users) : nil
        @destination = Destination.new(allow: allow, own: [[@host, @port]])
        @memory = Client::Memory.new(memory)
        @fields = Fields.new(@memory, all: all_fields)
        @pseudonym = via ? Pseudonym.new : nil
        @patience = patience
        @max_connections = max_connections
        @ahead = ahead
        @accounts = {}
        @lock = Mutex.new
        @strangers = Strangers.new(most: MOST_STRANGERS)
        @report = report
        @talking, @known = {}.compare_by_identity, {}.compare_by_identity
        @ending = Ending.new
        @watch = Watch.new { give_memory_back }
        @turned_away = TurnedAway.new
      end

      # Serves until {#stop}, and until what is running then has ended, or was given time enough.
      def run
        until @ending.asked?
          socket = accept or next
          serve(socket)
        end
        finish { yield @ending.grace if block_given? }
      ensure
        @server.close
        [@ending, @watch, @turned_away].each(&:close)
        @lock.synchronize { @talking.values }.each(&:kill)
        @lock.synchronize { @accounts.values }.each(&:close)
        @memory.save
      end

      # Nothing new is taken: no connections, and no requests on those that stand. May be called in a signal's handler.
      def stop(grace: 0) = @ending.ask(grace)

      attr_reader :ending
      attr_reader :watch

      def url = "http://#{authority}"

      # What a user has.
      def account(user = nil)
        @lock.synchronize { @accounts[user] ||= Account.new(user, memory: @memory, fields: @fields, ahead: @ahead, **options) }
      end

      # Closes connections to servers on which nothing is under way.
      def rest = @lock.synchronize { @accounts.values }.each(&:rest)

      def destinations = @destination.method(:check)

      # The proxy's own page, and its one switch.
      def page(request, body, account)
        return Reply.plain(421, "this is a proxy: set it as one, and ask for http://#{Report::HOST}/", request) unless ours?(request)
        return switched(request, body, account) if request.method == "POST" && request.path == "/switch"
        return Reply.plain(404, "there is nothing here but http://#{Report::HOST}/", request) unless %w[GET HEAD].include?(request.method) && ["/", ""].include?(request.path)
        html = account.report
        [Reply.new(200, PAGE_FIELDS, request, length: html.bytesize), (request.method == "HEAD") ? "" : html]
      end

      def inspect = "#<#{self.class} #{url}>"

      private

      def authority = "#{@host.include?(":") ? "[#{@host}]" : @host}:#{@port}"

      def options
        {attended: true, max_redirects: 0, decode: false, user_agent: nil, proxy: nil, destinations: destinations,
         timeouts: {first_byte: @patience, read: [@patience, LONGEST_PAUSE].min}}
      end

      # What was freed under load the allocator keeps, in as many places as there were threads: `_trim` is of `hikyaku/native`.
      def give_memory_back
        GC.start
        self.class.send(:_trim) if self.class.respond_to?(:_trim, true)
      end

      # A page of somebody else's, whose name leads here, is not shown it.
      def ours?(request)
        name = request.authority.delete_suffix(":80")
        name.casecmp?(Report::HOST) || name == authority || name == "localhost:#{@port}"
      end

      def switched(request, body, account)
        token = body[/(?:\A|&)token=([\w-]+)/, 1].to_s
        return Reply.plain(403, "this form is not of the proxy's page: load the page again", request) unless account.switch(token)
        [Reply.new(303, [["location", "/"]], request, length: 0), ""]
      end

      # What was fetched ahead is for requests that are not taken any more.
      def finish
        @server.close
        @lock.synchronize { @accounts.values }.each { |account| account.prefetcher.close }
        return if @ending.wait(most: IN_A_MOMENT) { over? } || @ending.at_once?
        yield
        @ending.wait { over? }
      end

      def over? = @lock.synchronize { @talking.empty? }

      # When there are no descriptors left the connection goes on to wait, and would be looked at without end.
      def accept
        IO.select([@server, @ending.io])
        socket = @server.accept_nonblock(exception: false)
        return if socket == :wait_readable
        return socket if place?
        @turned_away.add(socket, FULL)
        nil
      rescue *Shortage::KINDS
        @turned_away.take(@server, Shortage::TEXT)
        rest
        @ending.io.wait_readable(RESPITE)
        @turned_away.keep_place
        nil
      rescue SystemCallError # of a client that has gone
        nil
      end

      # Strangers have places of their own, and those of them that have to go are a moment in going.
      def place? = @lock.synchronize { @talking.size } < @max_connections + (@guard ? 2 * MOST_STRANGERS : 0)

      def introduce(socket)
        @strangers.go(socket)
        return true unless @guard
        @lock.synchronize { @known.size < @max_connections && @known[socket] = true }
      end

      def serve(socket)
        socket.setsockopt(:TCP, :NODELAY, 1)
        @strangers.come(socket) if @guard
        @lock.synchronize { @talking[socket] = Thread.new { converse(socket) } }
      rescue SystemCallError # it has gone
        @strangers.go(socket)
        socket.close
      end

      def converse(socket)
        Conversation.new(socket, self) { introduce(socket) }.run
      rescue => error
        @report&.call("#{error.class}: #{error.message}")
      ensure
        @strangers.go(socket)
        @lock.synchronize { [@talking, @known].each { |sockets| sockets.delete(socket) } }
      end
    end
  end
end
