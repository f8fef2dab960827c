# frozen_string_literal: true

require "openssl"
require_relative "dialer"
require_relative "client_certificate"
require_relative "tunnel"

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
    end
  end
end
