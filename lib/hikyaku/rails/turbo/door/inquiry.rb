# frozen_string_literal: true

require_relative "../../../error"
require_relative "../cable_class"
require_relative "../signed_name"
require_relative "cable_connection"

module Hikyaku
  module Turbo
    class Door
      # Asks classes of Action Cable which stream a page follows, as Action Cable would: with a connection that the application's own
      # class identifies, and with the parameters of the element. A class follows one stream, or refuses.
      #
      #     ApplicationCable::Connection#connect ──► before_command ──► the class: before_subscribe, subscribed ──► stream_from NAME
      #           │ rejects                              │ aborts                      │ rejects, or follows nothing      └──► [NAME, nil]
      #           └──────────────────────────────────────┴─────────────────────────────┴──────────────────────────────► [nil, "forbidden"]
      #
      # What takes a socket, a thread or several streams is an error: it is logged and reported, and the page is told "unsupported".
      class Inquiry
        # Put into an instance of the class that is asked.
        module Asked
          def names_for = @names_for ||= []

          def broadcasting_for(*) = super.tap { |name| names_for << name }

          private

          # The hub sends what was published, as it is.
          def worker_pool_stream_handler(broadcasting, handler, coder: nil)
            connection.lack("follows #{broadcasting.inspect} with a block or a coder of its own: broadcast what the page is to render") if handler || (coder && coder != ActiveSupport::JSON)
            super
          end
        end
        private_constant :Asked

        def initialize(request)
          @request = request
        end

        def ask(stream)
          name = name_from(CableClass.find(stream.class_name), stream)
          name ? [name, nil] : [nil, "forbidden"]
        rescue ConfigError => error
          ::Rails.logger&.error("Hikyaku: #{error.message}")
          ::Rails.error.report(error, handled: true, severity: :error, source: "hikyaku")
          [nil, "unsupported"]
        end

        private

        def name_from(type, stream)
          streams = follow(type, stream)
          return streams.first if streams.size < 2
          cannot(type, "follows #{streams.size} streams, and an element follows one: give each of them an element")
        rescue CableConnection::Lacking => error
          cannot(type, error.message)
        end

        def cannot(type, what)
          raise ConfigError, "turbo_stream_from was given channel: #{type.name}, and cannot follow what it follows: the class #{what}"
        end

        def follow(type, stream)
          connection.renew
          connection.run_callbacks(:command) { subscribe(type, stream) }
          raise CableConnection::Lacking, connection.lacking if connection.lacking
          connection.streams
        rescue CableConnection::Lacking
          raise
        rescue => error
          raise unless refusal?(error)
          ::Rails.logger&.warn("Hikyaku: #{type.name}, given as channel: to turbo_stream_from, refused a page with #{error.class}")
          []
        end

        def subscribe(type, stream)
          params = {**stream.params, "channel" => type.name, "signed_stream_name" => SignedName.make(stream.name)}
          asked = type.new(connection, JSON.generate(params), params.with_indifferent_access).extend(Asked)
          asked.subscribe_to_channel
          names = connection.streams
          return if names.empty?
          connection.lack("defers its confirmation, which nothing would wait for: decide in `subscribed`") unless connection.confirmed?
          return if (names & asked.names_for).empty? || type.singleton_class.include?(::Turbo::Streams::Broadcasts)
          connection.lack("follows what its `broadcast_to` sends, which goes by Action Cable: `extend Turbo::Streams::Broadcasts` there")
        end

        # Once for all classes that this page follows something with.
        def connection
          raise @failure if @failure
          @connection ||= CableConnection.make(@request).tap { |made| made.connect if made.respond_to?(:connect) }
        rescue => error
          @failure = error
          raise
        end

        # As Action Cable would let nobody in with it, and the application's own pages would answer with 4xx.
        def refusal?(error)
          return true if error.is_a?(::ActionCable::Connection::Authorization::UnauthorizedError)
          @connection&.rescue_with_handler(error) || ActionDispatch::ExceptionWrapper.status_code_for_exception(error.class.name) < 500
        end
      end
    end
  end
end
