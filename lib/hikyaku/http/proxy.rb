# frozen_string_literal: true

require "socket"
require_relative "client"
require_relative "proxy/admission"
require_relative "proxy/basic_auth"
require_relative "proxy/connection_handler"
require_relative "proxy/destination"
require_relative "proxy/disconnect_monitor"
require_relative "proxy/errors"
require_relative "proxy/forwarding"
require_relative "proxy/header_filter"
require_relative "proxy/shutdown"
require_relative "proxy/user_state"

module Hikyaku
  module HTTP
    # A proxy for a browser behind a slow, long link. It pipelines GETs of http: URLs to servers that support it, and prefetches the resources of a page. It passes
    # all other requests through.
    #
    #     proxy = Hikyaku::HTTP::Proxy.new(port: 8080)
    #     proxy.run                       # until proxy.stop, in another thread or in a signal handler
    #
    # Its status page is http://hikyaku.proxy/. It writes each message anew (RFC 9110, section 7.6; RFC 9112, section 11.2). It listens on the loopback, or with
    # users on another address.
    class Proxy
      LOOPBACK = /\A(?:127(?:\.\d{1,3}){3}|::1|localhost)\z/
      MAX_CONNECTIONS = 256
      # Seconds for a server's first byte, and for a pause within its response.
      TIMEOUT = 300
      MAX_PAUSE = 60
      # Seconds to wait for free descriptors.
      EXHAUSTED_PAUSE = 0.25
      # Seconds in which idle connections close.
      IDLE_GRACE = 0.2
      PAGE_FIELDS = [["content-type", "text/html; charset=utf-8"], ["cache-control", "no-store"], ["content-security-policy", StatusPage::POLICY],
        ["x-content-type-options", "nosniff"], ["referrer-policy", "no-referrer"]].freeze
      private_constant :LOOPBACK, :MAX_CONNECTIONS, :TIMEOUT, :MAX_PAUSE, :EXHAUSTED_PAUSE, :IDLE_GRACE, :PAGE_FIELDS

      attr_reader :host, :port, :basic_auth, :header_filter, :destination, :via_name, :timeout, :shutdown, :monitor

      def initialize(host: "127.0.0.1", port: 0, users: {}, allow: [], prefetch: true, all_fields: false, via: true, memory: Client::Memory.default_path,
        timeout: TIMEOUT, max_connections: MAX_CONNECTIONS, on_error: nil)
        unless LOOPBACK.match?(host) || users.any?
          raise ConfigError, "the proxy would listen on #{host}, where others can reach it: name its users, or listen on 127.0.0.1"
        end
        @server = TCPServer.new(host, port)
        @host, @port = @server.addr.values_at(3, 1)
        @basic_auth = users.any? ? BasicAuth.new(users) : nil
        @destination = Destination.new(allow: allow, own: [[@host, @port]])
        @memory = Client::Memory.new(memory)
        @header_filter = HeaderFilter.new(@memory, all: all_fields)
        @via_name = via ? Forwarding::ViaName.new : nil
        @timeout = timeout
        @prefetch = prefetch
        @on_error = on_error
        @lock = Mutex.new
        @user_states = {}
        @shutdown = Shutdown.new
        @monitor = DisconnectMonitor.new { release_memory }
        @admission = Admission.new(max: max_connections, authentication: users.any?)
      end

      # Serves until {#stop}, and then until the running exchanges or the grace have ended.
      def run
        until @shutdown.requested?
          socket = accept
          @admission.serve(socket) { |connection| handle(connection) } if socket
        end
        drain { yield @shutdown.grace if block_given? }
      ensure
        @server.close
        [@shutdown, @monitor, @admission, *user_states].each(&:close)
        @memory.save
      end

      # Accepts no more connections, and no more requests on the open ones. Safe in a signal handler.
      def stop(grace: 0) = @shutdown.request(grace)

      def url = "http://#{authority}"

      # Connections from browsers.
      def connections = @admission.size

      def user_state(user = nil)
        @lock.synchronize { @user_states[user] ||= UserState.new(user, memory: @memory, header_filter: @header_filter, prefetch: @prefetch, **options) }
      end

      # Closes idle connections to servers.
      def close_idle = user_states.each(&:close_idle)

      # The status page, and its switch.
      def status_page(request, body, user_state)
        return text(421, "this is a proxy: configure it as one, and open http://#{StatusPage::HOST}/", request) unless addressed?(request)
        return switch(request, body, user_state) if request.method == "POST" && request.path == "/switch"
        return text(404, "the proxy has no page but http://#{StatusPage::HOST}/", request) unless %w[GET HEAD].include?(request.method) && ["/", ""].include?(request.path)
        Forwarding::DownstreamResponse.new(200, PAGE_FIELDS, request, content: user_state.status_page)
      end

      def inspect = "#<#{self.class} #{url}>"

      private

      def authority = "#{@host.include?(":") ? "[#{@host}]" : @host}:#{@port}"

      def user_states = @lock.synchronize { @user_states.values }

      def options
        {attended: true, max_redirects: 0, decode: false, user_agent: nil, proxy: nil, destinations: @destination.method(:check),
         timeouts: {first_byte: @timeout, read: [@timeout, MAX_PAUSE].min}}
      end

      # The allocator keeps freed memory, in an arena for each thread: `_trim` of `hikyaku/native` returns it to the system.
      def release_memory
        GC.start
        self.class.send(:_trim) if self.class.respond_to?(:_trim, true)
      end

      # Another site's name may resolve to the proxy: its pages must not read the status page.
      def addressed?(request)
        name = request.authority.delete_suffix(":80")
        name.casecmp?(StatusPage::HOST) || name == authority || name == "localhost:#{@port}"
      end

      def switch(request, body, user_state)
        token = body[/(?:\A|&)token=([\w-]+)/, 1].to_s
        return text(403, "the form is not from the proxy's page: reload the page", request) unless user_state.switch(token)
        Forwarding::DownstreamResponse.new(303, [["location", "/"]], request, content: "")
      end

      def text(...) = Forwarding::DownstreamResponse.text(...)

      def drain
        @server.close
        user_states.each { |state| state.prefetcher.close }
        return if @shutdown.wait(max: IDLE_GRACE) { @admission.empty? } || @shutdown.immediate?
        yield
        @shutdown.wait { @admission.empty? }
      end

      # Without a descriptor, accept fails at once and the listener stays readable: the pause prevents a busy loop.
      def accept
        IO.select([@server, @shutdown.io])
        @admission.accept(@server)
      rescue *ResourceExhausted::ERRORS
        @admission.reject(@server)
        close_idle
        @shutdown.io.wait_readable(EXHAUSTED_PAUSE)
        @admission.reserve
        nil
      rescue SystemCallError # the client has closed it
        nil
      end

      def handle(socket)
        ConnectionHandler.new(socket, self) { @admission.authenticated(socket) }.run
      rescue => error
        @on_error&.call("#{error.class}: #{error.message}")
      ensure
        @admission.release(socket)
      end
    end
  end
end
