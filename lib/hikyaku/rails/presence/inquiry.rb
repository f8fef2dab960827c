# frozen_string_literal: true

require "json"
require_relative "../presence"
require_relative "../../client/publisher/endpoint"
require_relative "../../client/publisher/pool"
require_relative "../../client/publisher/token_source"
require_relative "../../web/token_maker"

module Hikyaku
  module Presence
    # Asks a hub in another process who subscribes to a topic.
    #
    # Mercure draft-08, section "Subscription API".
    class Inquiry
      SECONDS = 3
      LIFETIME = 300
      MAX_ANSWER_BYTES = 16 * 1024 * 1024
      private_constant :SECONDS, :LIFETIME, :MAX_ANSWER_BYTES

      def initialize(target, config, ca_file: nil, insecure: false)
        @endpoint = Publisher::Endpoint.new(target, open_timeout: SECONDS, read_timeout: SECONDS, write_timeout: SECONDS, ca_file: ca_file)
        @endpoint.confidential! unless insecure
        @pool = Publisher::Pool.new(size: 5, keep_alive: 4) { @endpoint.connection }
        @tokens = Publisher::TokenSource.new(-> { mint(config) })
      end

      def call(stream_name)
        answer, body = ask(Presence.collection(stream_name, path))
        raise Unknown, "#{@endpoint} does not say who is here: it answered #{answer.code}#{advice(answer)}" unless answer.is_a?(Net::HTTPOK)
        JSON.parse(body).fetch("subscriptions")
      rescue *Publisher::Endpoint::NETWORK_ERRORS => error
        raise Unknown, "#{@endpoint} does not say who is here: #{error.message}"
      rescue JSON::ParserError, KeyError, TypeError
        raise Unknown, "#{@endpoint} does not say who is here: its answer is not understood"
      end

      def inspect = "#<#{self.class.name} #{@endpoint}>"

      private

      def path = @endpoint.uri.path

      def mint(config)
        lists = {"match" => "#{path}/subscriptions/exact/:topic", "match_type" => "urlpattern"}
        Web::TokenMaker.for(config, role: :subscriber).call(subscribe: [lists], subject: "hikyaku", expires_in: LIFETIME)
      end

      def advice(answer) = (answer.code == "404") ? ": run it with --subscriptions" : ""

      def ask(target)
        request = Net::HTTP::Get.new(target, "accept" => "application/json", "accept-encoding" => "identity")
        request["host"] = @endpoint.host
        request["authorization"] = "Bearer #{@tokens.token}"
        connection = @pool.take
        body = +""
        answer = connection.request(request) do |response|
          response.read_body do |bytes|
            body << bytes
            raise Unknown, "#{@endpoint} says of too many that they are here" if body.bytesize > MAX_ANSWER_BYTES
          end
        end
        connection.kept_seconds = answer["keep-alive"].to_s[/timeout=(\d{1,6})/i, 1]&.to_f
        whole = true
        [answer, body]
      ensure
        whole ? @pool.give_back(connection) : connection&.discard
      end
    end
  end
end
