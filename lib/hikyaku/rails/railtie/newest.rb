# frozen_string_literal: true

require_relative "../../support/clock"
require_relative "../../client/publisher/endpoint"
require_relative "../../client/publisher/pool"
require_relative "../../client/publisher/token_source"
require_relative "../../web/token_maker"

module Hikyaku
  class Railtie < ::Rails::Railtie
    # Asks a hub in another process for its newest event: a page that is rendered now, and listens later, begins after it.
    #
    # What an empty cursor would be answered (Mercure draft-08, section "Reconnection, State Reconciliation, and Event
    # Sourcing"), so any hub of draft 08 can be asked. While there is no event that is "earliest", by which nobody learns that one is
    # missing; our own hub has a header more, in which there is an id then, too. No page waits long for the answer, or fails without it.
    class Newest
      SECONDS = 1
      # For so long a hub that did not answer is not asked again.
      PAUSE = 5
      # Whom one token lasts, and what it is for: a topic under which nothing private is published.
      LIFETIME = 300
      TOPIC = "/hikyaku/newest"
      HEADER = "mercure-last-event-id"
      OWN_HEADER = "hikyaku-cursor"
      private_constant :SECONDS, :PAUSE, :LIFETIME, :TOPIC, :HEADER, :OWN_HEADER

      def initialize(target, config, ca_file: nil, insecure: false, logger: nil, clock: Support::Clock::MONOTONIC)
        @endpoint = Publisher::Endpoint.new(target, open_timeout: SECONDS, read_timeout: SECONDS, write_timeout: SECONDS, ca_file: ca_file)
        @pool = Publisher::Pool.new(size: 5, keep_alive: 4) { @endpoint.connection }
        @tokens = Publisher::TokenSource.new((-> { mint(config) } if insecure || @endpoint.confidential?))
        @logger = logger
        @clock = clock
        @silent_until = nil
      end

      def call
        return if @silent_until && @clock.call < @silent_until
        answer = ask
        id = answer[OWN_HEADER] || answer[HEADER] if answer.is_a?(Net::HTTPSuccess)
        id ? id.dup.force_encoding(Encoding::UTF_8) : give_up("it answers #{answer.code}#{" without #{HEADER}" if answer.is_a?(Net::HTTPSuccess)}")
      rescue *Publisher::Endpoint::NETWORK_ERRORS => error
        give_up(error.message)
      end

      def inspect = "#<#{self.class.name} #{@endpoint}>"

      private

      # Without a key the hub may still let anybody read.
      def mint(config)
        Web::TokenMaker.for(config, role: :subscriber).call(subscribe: [TOPIC], subject: "hikyaku", expires_in: LIFETIME)
      rescue ConfigError
        nil
      end

      def ask
        request = Net::HTTP::Head.new("#{@endpoint.uri.path}?#{URI.encode_www_form(match: TOPIC, last_event_id: "")}")
        request["host"] = @endpoint.host
        token = @tokens.token and request["authorization"] = "Bearer #{token}"
        connection = @pool.take
        answer = connection.request(request)
        connection.kept_seconds = answer["keep-alive"].to_s[/timeout=(\d{1,6})/i, 1]&.to_f
        whole = true
        answer
      ensure
        whole ? @pool.give_back(connection) : connection&.discard
      end

      def give_up(reason)
        @silent_until = @clock.call + PAUSE
        @logger&.warn("Hikyaku: #{@endpoint} does not say which event is its newest, so pages begin when they connect: #{reason}")
        nil
      end
    end
  end
end
