# frozen_string_literal: true

require "socket"
require_relative "message"

module Hikyaku
  class Server
    module Handover
      # The side that takes connections: a Unix socket, and a thread for each process that gives.
      class Receiver
        # For this user alone.
        MODE = 0o600
        BACKLOG = 64
        # Seconds before it tries again when no file is left.
        PAUSE = 0.1
        private_constant :MODE, :BACKLOG, :PAUSE

        def initialize(path, logger:, &take)
          @path = path
          @logger = logger
          @take = take
          @ways = []
          @server = listen
          @thread = Thread.new { accept }
          @thread.name = "hikyaku-handover"
        end

        # Listens no more. Connections that were taken stay.
        def close
          @server.close
          File.unlink(@path)
        rescue IOError, SystemCallError
          nil
        ensure
          # Who gives one now must know at once that nobody takes it.
          [@thread, *@ways].each(&:kill).each(&:join)
        end

        private

        def listen
          File.unlink(@path) if File.socket?(@path) && !answers?
          server = Socket.new(:UNIX, KIND)
          previous = File.umask(0o777 & ~MODE)
          begin
            server.bind(Socket.sockaddr_un(@path))
          ensure
            File.umask(previous)
          end
          server.listen(BACKLOG)
          server
        rescue SystemCallError
          server&.close
          raise
        end

        def answers?
          Socket.new(:UNIX, KIND).tap { |socket| socket.connect(Socket.sockaddr_un(@path)) }.close
          true
        rescue SystemCallError
          false
        end

        def accept
          until @server.closed?
            begin
              way, = @server.accept
              @ways.reject! { |thread| !thread.alive? }
              @ways << Thread.new(way) { |its_own| receive(its_own) }
            rescue SystemCallError => error
              @logger.error("handover: #{error.message}")
              sleep PAUSE
            end
          end
        rescue IOError
          nil # it was closed
        end

        def receive(way)
          return unless own?(way)
          while (message = read(way))
            request, socket = message
            take(socket, request) if socket
          end
        rescue IOError, SystemCallError
          nil
        ensure
          way.close
        end

        # Whose process it is that gives.
        def own?(way)
          user, = way.getpeereid
          return true if user == Process.euid || user.zero?
          @logger.warn("handover: a process of user #{user} was turned away")
          false
        end

        def read(way)
          request, _, flags, *controls = way.recvmsg(MAX_REQUEST_BYTES, 0, nil, scm_rights: true)
          descriptors = controls.flat_map { |control| control.cmsg_is?(:SOCKET, :RIGHTS) ? control.unix_rights : [] }
          return if request.empty? && descriptors.empty?
          return [request, Socket.for_fd(descriptors.first.tap { |io| io.autoclose = false }.fileno)] if descriptors.one? && flags & Socket::MSG_TRUNC == 0
          descriptors.each(&:close)
          @logger.warn("handover: a message came without its connection; it is dropped")
          [request, nil]
        end

        def take(socket, request)
          @take.call(socket, request)
        rescue => error
          socket.close
          @logger.error("handover: #{error.class}: #{error.message}")
        end
      end
    end
  end
end
