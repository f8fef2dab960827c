# frozen_string_literal: true

require "delegate"
require_relative "../../error"

module Hikyaku
  module Turbo
    class Door
      # A connection of Action Cable, of the application's own class, that has a request and no socket: enough to ask a class which
      # stream it follows for a page.
      #
      # @api private
      module CableConnection
        # What a connection without a socket cannot do was asked of it.
        class Lacking < StandardError
          include Error
        end

        # The parts of Action Cable's server that a class reaches when it follows a stream.
        class Server < SimpleDelegator
          # @return [Array<String>] names of the streams that are followed now
          attr_reader :streams

          # @param connection [CableConnection]
          def initialize(connection)
            super(::ActionCable.server)
            @connection = connection
            @streams = []
          end

          # @return [Server]
          def event_loop = self

          # @return [Server]
          def pubsub = self

          # @return [void]
          def post = yield

          # @return [void]
          def timer(*) = @connection.lack("starts a timer: let a job do that")

          # @return [void]
          def worker_pool = @connection.lack("uses Action Cable's threads: let a job do that")

          # @param name [String]
          # @param begun [#call] is to be called when it is followed
          # @return [void]
          def subscribe(name, _handler, begun)
            @streams |= [name]
            begun.call
          end

          # @return [void]
          def unsubscribe(name, _handler)
            @streams -= [name]
          end
        end

        # @param request [ActionDispatch::Request]
        # @return [ActionCable::Connection::Base] with this module
        def self.make(request)
          ::ActionCable.server.config.connection_class.call.allocate.extend(self).tap { |connection| connection.prepare(request) }
        end

        # @return [String, nil] what it lacked first, whether or not the class went on
        attr_reader :lacking

        # @param request [ActionDispatch::Request] of the page
        # @return [void]
        def prepare(request)
          @request = request
          @env = request.env
          @logger = ::ActionCable::Connection::TaggedLoggerProxy.new(::ActionCable.server.logger, tags: [])
          @subscriptions = ::ActionCable::Connection::Subscriptions.new(self)
          @server = Server.new(self)
        end

        # Before each question.
        #
        # @return [void]
        def renew
          @confirmed = @lacking = nil
          @server = Server.new(self)
        end

        # @return [Array<String>] names of the streams that were followed
        def streams = @closed ? [] : server.streams

        # @return [Boolean] whether the class has said that all of them are
        def confirmed? = !!@confirmed

        # @param cable_message [Hash]
        # @return [void]
        def transmit(cable_message)
          types = ::ActionCable::INTERNAL[:message_types]
          return if cable_message[:type] == types[:rejection]
          return @confirmed = true if cable_message[:type] == types[:confirmation]
          lack("transmits to the page: render that, or broadcast it")
        end

        # @return [void]
        def close(**) = @closed = true

        # @return [void]
        def worker_pool = server.worker_pool

        # @return [void]
        def send_async(*) = worker_pool

        # @param what [String]
        # @raise [Lacking]
        def lack(what)
          @lacking ||= what
          raise Lacking, what
        end
      end
    end
  end
end
