# frozen_string_literal: true

require "securerandom"
require_relative "client"
require_relative "credentials"
require_relative "options"
require_relative "connection"

module Hikyaku
  class Doctor
    # What the checks share: where they look, as whom, and what earlier ones have learnt.
    class Visit
      # An update that was published, and when the hub had said so.
      Publication = Struct.new(:id, :sent_at, :answered_at, :answer)

      attr_reader :options, :credentials, :place, :client
      attr_accessor :front, :answer, :metadata
      attr_reader :stopped
      attr_accessor :streamless, :publishless

      def initialize(url, credentials:, options:, progress:)
        @options = options
        @credentials = credentials
        @progress = progress
        go(Place.new(url, connect: options.connect, ca_file: options.ca_file))
        raise ConfigError, "#{place} is not encrypted and would show the tokens to the network: use https, or say insecure: true" if credentials.any? && !confidential?
        @tokens = {}
        @accepted = {}
      end

      # Goes on where the hub really is. Tokens stay with the host that they were meant for.
      def move(place)
        stays = place.host == @place.host
        go(place)
        return true if !credentials.any? || (stays && confidential?)
        @credentials = Credentials.new
        false
      end

      def stop(reason)
        @stopped ||= reason
      end

      def progress(what, seconds = nil) = @progress.call(what, seconds)

      def topic = @topic ||= options.topic || "urn:hikyaku:doctor:#{SecureRandom.hex(8)}"

      def audience = credentials.audience(resource) || place.to_s

      def resource = (metadata["resource"] if metadata && metadata["resource"].is_a?(String))

      def hikyaku? = !!answer&.problem?

      # A token that was found to be good, for the topic.
      def accept(role, token)
        @accepted[role] = true
        @tokens[role] = token
      end

      # Subscribers are let in without a token.
      def open_to_all
        @accepted[:subscriber] = true
      end

      def publishes? = @accepted.key?(:publisher)

      def streams? = @accepted.key?(:subscriber)

      # Events do not come at once: what waits for one is not to be believed.
      def hold_events
        @held = true
      end

      def held? = !!@held

      def subscribe(headers: {}, **parameters)
        client.stream([["match", topic], *parameters.map { |name, value| [name.to_s, value] }], headers: bearer(:subscriber).merge(headers))
      end

      # Private where readers have a token that was made for the topic: the readers of everything are not to be bothered.
      def publish(data = "{\"hikyaku\":\"doctor\"}")
        form = [["topic", topic], ["data", data]]
        form << %w[private on] if @tokens.key?(:subscriber) && !credentials.given?(:subscriber)
        answer = client.request("POST", headers: bearer(:publisher), form: form)
        raise ConnectionFailed, "#{place}: a publish was answered with #{answer.status}" unless answer.status == 200
        Publication.new(answer.body.dup.force_encoding(Encoding::UTF_8), answer.sent_at, answer.head_at, answer)
      end

      def bearer(role) = @tokens.key?(role) ? {"authorization" => "Bearer #{@tokens[role]}"} : {}

      private

      def go(place)
        @place = place
        @client = Client.new(place)
      end

      def confidential? = place.confidential? || options.insecure
    end
  end
end
