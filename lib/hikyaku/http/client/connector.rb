# frozen_string_literal: true

require "openssl"
require "socket"
require_relative "../errors"
require_relative "../parser"
require_relative "settings"

module Hikyaku
  module HTTP
    class Client
      # A connection that comes about: dialed, through a proxy where there is one, with TLS where the origin has that.
      class Connector
        NUMERIC = /\A(?:[0-9.]+\z|\[)/
        private_constant :NUMERIC

        def round_trip = @dialer.round_trip

        def initialize(route, settings, wake:)
          @route = route
          @settings = settings
          @dialer = Dialer.new(route.host, route.port, timeouts: settings.timeouts, wake: wake, check: settings.destinations, unix_socket: route.unix_socket)
          @phase = :dial
          @wants = nil
        end

        # Goes on as far as it can.
        def step(now)
          dial(now) or return if @phase == :dial
          tunnel if @phase == :tunnel
          handshake if @phase == :handshake
          return @io if @phase == :done
          raise timeout if now > @limit
        end

        def reading = (@wants == :readable) ? [@io] : []

        def writing
          return @dialer.waiting if @phase == :dial
          (@wants == :writable) ? [@io] : []
        end

        def deadline = (@phase == :dial) ? @dialer.deadline : @limit

        def close
          @dialer.close
          @io&.close
        rescue SystemCallError, OpenSSL::SSL::SSLError
          nil
        end

        private

        def dial(now)
          return unless @dialer.step(now)
          @io = @dialer.socket
          @limit = now + @settings.timeouts.handshake
          @tunnel = Tunnel.new(@io, @route) if @route.tunnel?
          @phase = @tunnel ? :tunnel : ready_for_handshake
        end

        def tunnel
          return if (@wants = @tunnel.step)
          @phase = ready_for_handshake
        end

        def ready_for_handshake
          return :done unless @route.origin.tls?
          plain = @io
          @io = OpenSSL::SSL::SSLSocket.new(plain, @settings.tls_context)
          @io.sync_close = true
          @io.hostname = @route.origin.host unless @route.origin.host.match?(NUMERIC)
          :handshake
        rescue OpenSSL::SSL::SSLError => error
          disagree(error)
        end

        def handshake
          case @io.connect_nonblock(exception: false)
          when :wait_readable then @wants = :readable
          when :wait_writable then @wants = :writable
          else
            @wants = nil
            @io.post_connection_check(@route.origin.hostname) if @settings.verify?
            return @phase = :done
          end
          nil
        rescue OpenSSL::SSL::SSLError, SystemCallError => error
          disagree(error)
        end

        def disagree(error)
          advice = error.message.include?("certificate verify failed") ? "; if you trust it, name the certificate of who vouches for it with ca_file:" : ClientCertificate.advice(error)
          raise ConnectFailed, "no agreement about TLS with #{@route.origin}: #{error.message}#{advice}"
        end

        def timeout
          what = (@phase == :tunnel) ? "the proxy #{@route.host}, port #{@route.port}, did not answer" : "#{@route.origin} did not finish the handshake of TLS"
          TimedOut.new("#{what} within #{@settings.timeouts.handshake} s", phase: :handshake)
        end
      end

      # Makes a connection without waiting: who calls waits for what it wants, and calls again.
      #
      #     resolve ──► connect ──┬─────────────────────────► done
      #                 (a race)  └──► CONNECT ──► handshake ──► done
      #
      # Where a name has several addresses, the next is tried beside the last after a quarter of a second, families in turn, and the first that answers
      # is taken (RFC 8305). Names are resolved in a thread of their own, as the system's resolver waits.
      class Dialer
        STAGGER = 0.25 # seconds
        MOST_ADDRESSES = 8
        # A Unix socket whose backlog is full is tried again after so many seconds: the system does not say when there is a place.
        AGAIN = 0.05
        LOCAL_NAME = /(?:\A|\.)localhost\.?\z/
        LOOPBACK = %w[127.0.0.1 ::1].freeze
        NUMERIC = /\A(?:[0-9.]+|[0-9a-f:.]*:[0-9a-f:.]*(?:%\w+)?)\z/i
        private_constant :AGAIN, :STAGGER, :MOST_ADDRESSES, :LOCAL_NAME, :LOOPBACK, :NUMERIC

        attr_reader :round_trip

        def initialize(host, port, timeouts:, wake:, check: nil, unix_socket: nil)
          @host = host
          @port = port
          @timeouts = timeouts
          @wake = wake
          @check = check
          @unix_socket = unix_socket
          @racing = {}
          @addresses = unix_socket && [unix_socket]
          @resolution = nil
          @failures = []
          @cause = nil
        end

        attr_reader :socket

        # Goes on as far as it can.
        def step(now)
          @began ||= now
          return false unless resolved?(now)
          @connecting ||= now
          look(now)
          return true if @socket
          raise timeout(:connect) if now - @connecting > @timeouts.connect
          dial(now) if due?(now)
          !@socket.nil?
        end

        def waiting = @socket ? [] : @racing.keys

        def deadline
          return @began + @timeouts.resolve unless @connecting
          limit = @connecting + @timeouts.connect
          (@addresses.any? && @next) ? [@next, limit].min : limit
        end

        def close
          @racing.each_key(&:close)
          @racing.clear
        end

        private

        def resolved?(now)
          return true if @addresses
          @resolution ||= resolve
          found = @resolution.is_a?(Thread) ? @resolution[:hikyaku_addresses] : @resolution
          unless found
            raise timeout(:resolve) if now - @began > @timeouts.resolve
            return false
          end
          raise ConnectFailed, "there is no address for #{@host}: #{found.message}" if found.is_a?(StandardError)
          @addresses = in_turn(checked(found))
          true
        end

        # Whoever refuses says why: it is the cause of what is raised here.
        def checked(addresses)
          return addresses unless @check
          usable = Array(@check.call(@host, @port, addresses))
          raise ConnectFailed, "none of the addresses of #{@host} may be used" if usable.empty?
          usable
        rescue Error => error
          raise ConnectFailed, error.message
        rescue => error
          raise ConnectFailed, "whether #{@host} may be reached could not be found out: #{error.message} (#{error.class})"
        end

        def resolve
          return LOOPBACK if @host.match?(LOCAL_NAME)
          return [@host] if @host.match?(NUMERIC)
          host, wake = @host, @wake
          Thread.new do
            found = begin
              Addrinfo.getaddrinfo(host, nil, nil, :STREAM).map(&:ip_address).uniq
            rescue => error
              error
            end
            Thread.current[:hikyaku_addresses] = found
            wake.call
          end
        rescue ThreadError => error
          error
        end

        # The families in turn, as the resolver ordered them.
        def in_turn(addresses)
          six, four = addresses.first(MOST_ADDRESSES).partition { |address| address.include?(":") }
          first, second = addresses.first.to_s.include?(":") ? [six, four] : [four, six]
          longest = [first.size, second.size].max
          Array.new(longest) { |i| [first[i], second[i]] }.flatten.compact
        end

        def due?(now) = @racing.empty? || (@next && now >= @next)

        def dial(now)
          while (address = @addresses.shift)
            @next = now + STAGGER
            return if attempt(address, now)
          end
          @next = nil
          raise ConnectFailed, refusal, cause: @cause if @racing.empty?
        end

        def attempt(address, now)
          info = @unix_socket ? Addrinfo.unix(address) : Addrinfo.tcp(address, @port)
          socket = Socket.new(info.afamily, :STREAM, 0)
          socket.setsockopt(:TCP, :NODELAY, 1) unless @unix_socket
          if socket.connect_nonblock(info.to_sockaddr, exception: false) == :wait_writable
            @racing[socket] = [info, now]
          else
            win(socket, now, now)
          end
          true
        rescue SystemCallError, SocketError => error
          socket&.close
          return again(address, now) if @unix_socket && error.is_a?(Errno::EAGAIN)
          @cause = error
          @failures << "#{address}: #{error.message[/\A[^-(]+/].strip}"
          false
        end

        def again(address, now)
          @addresses.unshift(address)
          @next = now + AGAIN
          true
        end

        def look(now)
          @racing.keys.each do |socket|
            info, began = @racing[socket]
            socket.connect_nonblock(info.to_sockaddr, exception: false) == :wait_writable or return win(socket, began, now)
          rescue Errno::EALREADY
            next # it is still on its way
          rescue Errno::EISCONN
            return win(socket, began, now)
          rescue SystemCallError => error
            @racing.delete(socket)
            socket.close
            @failures << "#{info.ip_address}: #{error.message[/\A[^-(]+/].strip}"
          end
        end

        def win(socket, began, now)
          @racing.delete(socket)
          close
          @round_trip = now - began
          @socket = socket
        end

        def where = @unix_socket ? "the socket #{@unix_socket}" : "#{@host}, port #{@port}"

        # The address of a socket is its path, which stands there already.
        def refusal = "no connection to #{where}: #{@failures.uniq.join("; ").delete_prefix("#{@unix_socket}: ")}"

        def timeout(phase)
          what = (phase == :resolve) ? "no address for #{@host} within #{@timeouts.resolve} s" : "no connection to #{where}, within #{@timeouts.connect} s"
          TimedOut.new(what, phase: phase)
        end
      end

      # Asks a proxy for a way through to an origin, without waiting. RFC 9110, section 9.3.6.
      class Tunnel
        PIECE = 4_096
        private_constant :PIECE

        def initialize(socket, route)
          @socket = socket
          where = "#{route.origin.host}:#{route.origin.port}"
          credentials = route.credentials
          @left = "CONNECT #{where} HTTP/1.1\r\nHost: #{where}\r\n#{"Proxy-Authorization: #{credentials}\r\n" if credentials}\r\n"
          @parser = Parser.new(:response)
          @parser.request_method = "CONNECT"
          @route = route
        end

        def step
          return :writable unless written?
          loop do
            bytes = @socket.read_nonblock(PIECE, exception: false)
            return :readable if bytes == :wait_readable
            refuse("closed the connection") if bytes.nil?
            @parser << bytes
            return if stands?
          end
        rescue Parser::Malformed, SystemCallError => error
          refuse(error.message)
        end

        private

        def written?
          until @left.empty?
            count = @socket.write_nonblock(@left, exception: false)
            return false if count == :wait_writable
            @left = @left.byteslice(count..)
          end
          true
        end

        def stands?
          while (part = @parser.next)
            next unless part.is_a?(Parser::Response) && !part.interim?
            refuse("answered #{part.status}#{" (it wants other credentials)" if part.status == 407}") unless part.upgrade?
            refuse("said something before anybody asked") unless @parser.rest.empty?
            return true
          end
          false
        end

        def refuse(why) = raise(ConnectFailed, "no way to #{@route.origin} through the proxy #{@route.host}, port #{@route.port}: it #{why}")
      end
    end
  end
end
