# frozen_string_literal: true

require_relative "../../client/publisher/endpoint"
require_relative "../../client/publisher/pool"
require_relative "../../support/hop_by_hop"
require_relative "../../web/problem"
require_relative "hub_unavailable"

module Hikyaku
  class Server
    class Relay
      # Asks the hub's process, over connections that are kept, and gives its answer on. Thread-safe; may be used in a forked
      # child.
      class HubConnection
        TIMEOUTS = {open_timeout: 5, read_timeout: 30, write_timeout: 10}.freeze
        POOL = {size: 5, keep_alive: 10}.freeze
        # Done twice is done once (RFC 9110, section 9.2.2).
        REPEATABLE = %w[GET HEAD OPTIONS QUERY DELETE PUT].freeze
        UNCERTAIN = "the hub gave no answer: what was asked for may have been done or not"
        # No array: of an empty one servers would say how long it is.
        NOTHING = [].each.freeze
        private_constant :TIMEOUTS, :POOL, :REPEATABLE, :UNCERTAIN, :NOTHING

        # Net::HTTP asks for compression, names itself, and takes any body for a form, unless it is told otherwise.
        class Message < Net::HTTPGenericRequest
          def initialize(request, headers)
            super(request.method, !request.body.empty?, request.method != "HEAD", request.target, {"accept-encoding" => "identity", "host" => "localhost"}.merge(headers))
            %w[accept user-agent accept-encoding].each { |name| delete(name) unless headers.key?(name) }
            self.body = request.body unless request.body.empty?
          end

          private

          def supply_default_content_type
          end
        end
        private_constant :Message

        def initialize(socket)
          endpoint = Publisher::Endpoint.new("unix:#{socket}", **TIMEOUTS)
          @pool = Publisher::Pool.new(**POOL) { endpoint.connection }
        end

        def call(request, address, harmless: false)
          message = Message.new(request, request.headers(address))
          repeated = false
          begin
            ask(message)
          rescue *Publisher::Endpoint::NETWORK_ERRORS
            raise Web::Problem.new(502, UNCERTAIN) unless harmless || REPEATABLE.include?(request.method)
            raise HubUnavailable if repeated
            repeated = true
            retry
          end
        end

        private

        def ask(message)
          connection = connect
          response = connection.request(message)
          kept = connection.open?
          answer(response)
        ensure
          kept ? @pool.give_back(connection) : connection&.discard
        end

        def connect
          @pool.take
        rescue *Publisher::Endpoint::NETWORK_ERRORS
          raise HubUnavailable
        end

        def answer(response)
          headers = response.to_hash.except(*Support::HopByHop::FIELDS).transform_values { |values| values.one? ? values.first : values }
          body = response.body
          [response.code.to_i, headers, body ? [body] : NOTHING]
        end
      end
    end
  end
end
