# frozen_string_literal: true

require "delegate"
require_relative "../../../error"

module Hikyaku
  module Turbo
    class Door
      # A connection of Action Cable, of the application's own class, that has a request and no socket: enough to ask a class which
      # stream it follows for a page.
      module CableConnection
        # What a connection without a socket cannot do was asked of it.
        class Lacking < StandardError
          include Error
        end

        # The parts of Action Cable's server that a class reaches when it follows a stream.
        class Server < SimpleDelegator
          attr_reader :streams

          def initialize(connection)
            super(::ActionCable.server)
            @connection = connection
            @streams = []
          end

          def event_loop = self

          def pubsub = self

          def post = yield

          def timer(*) = @connection.lack("starts a timer: let a job do that")

          def worker_pool = @connection.lack("uses Action Cable's threads: let a job do that")

          def subscribe(name, _handler, begun)
            @streams |= [name]
            begun.call
          end

          def unsubscribe(name, _handler)
            @streams -= [name]
          end
        end

        def self.make(request)
          ::ActionCable.server.config.connection_class.call.allocate.extend(self).tap { |connection| connection.prepare(request) }
        end

        attr_reader :lacking

        def prepare(request)
          @request = request
          @env = request.env
          @logger = ::ActionCable::Connection::TaggedLoggerProxy.new(::ActionCable.server.logger, tags: [])
          @subscriptions = ::ActionCable::Connection::Subscriptions.new(self)
          @server = Server.new(self)
        end

        # Before each question.
        def renew
          @confirmed = @lacking = nil
          @server = Server.new(self)
        end

        def streams = @closed ? [] : server.streams

        def confirmed? = !!@confirmed

        def transmit(cable_message)
          types = ::ActionCable::INTERNAL[:message_types]
          return if cable_message[:type] == types[:rejection]
          return @confirmed = true if cable_message[:type] == types[:confirmation]
          lack("transmits to the page: render that, or broadcast it")
        end

        def close(**) = @closed = true

        def worker_pool = server.worker_pool

        def send_async(*) = worker_pool

        def lack(what)
          @lacking ||= what
          raise Lacking, what
        end
      end
    end
  end
end
