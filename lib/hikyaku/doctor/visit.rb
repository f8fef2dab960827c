# frozen_string_literal: true

require "securerandom"
require_relative "client"
require_relative "credentials"
require_relative "front"
require_relative "place"

module Hikyaku
  class Doctor
    # What the checks share: where they look, as whom, and what earlier ones have learnt.
    #
    # @api private
    class Visit
      # An update that was published, and when the hub had said so.
      Publication = Struct.new(:id, :sent_at, :answered_at, :answer)

      # @return [Options]
      attr_reader :options
      # @return [Credentials]
      attr_reader :credentials
      # @return [Place]
      attr_reader :place
      # @return [Client]
      attr_reader :client
      # @return [Front, nil] once there was an answer
      attr_accessor :front
      # @return [Exchange, nil] the first answer
      attr_accessor :answer
      # @return [Hash, nil] the metadata of the hub, as it came
      attr_accessor :metadata
      # @return [String, nil] why nothing else can be checked
      attr_reader :stopped
      # @return [String, nil] why no stream can be opened
      attr_accessor :streamless
      # @return [String, nil] why nothing can be published
      attr_accessor :publishless

      # @param url [String]
      # @param credentials [Credentials]
      # @param options [Options]
      # @param progress [#call] told what is waited for, and for how many seconds at most
      # @raise [ConfigError]
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
      #
      # @param place [Place]
      # @return [Boolean] whether the credentials came along
      def move(place)
        stays = place.host == @place.host
        go(place)
        return true if !credentials.any? || (stays && confidential?)
        @credentials = Credentials.new
        false
      end

      # @param reason [String]
      # @return [void]
      def stop(reason)
        @stopped ||= reason
      end

      # @param what [String]
      # @param seconds [Numeric, nil]
      # @return [void]
      def progress(what, seconds = nil) = @progress.call(what, seconds)

      # @return [String] on which the checks publish
      def topic = @topic ||= options.topic || "urn:hikyaku:doctor:#{SecureRandom.hex(8)}"

      # @return [String] what tokens are made for
      def audience = credentials.audience(resource) || place.to_s

      # @return [String, nil] what the hub says that it is called
      def resource = (metadata["resource"] if metadata && metadata["resource"].is_a?(String))

      # @return [Boolean] whether the hub refuses as Hikyaku's does
      def hikyaku? = !!answer&.problem?

      # A token that was found to be good, for the topic.
      #
      # @param role [Symbol]
      # @param token [String]
      # @return [void]
      def accept(role, token)
        @accepted[role] = true
        @tokens[role] = token
      end

      # Subscribers are let in without a token.
      #
      # @return [void]
      def open_to_all
        @accepted[:subscriber] = true
      end

      # @return [Boolean] whether a publish was accepted
      def publishes? = @accepted.key?(:publisher)

      # @return [Boolean] whether a stream was opened
      def streams? = @accepted.key?(:subscriber)

      # Events do not come at once: what waits for one is not to be believed.
      #
      # @return [void]
      def hold_events
        @held = true
      end

      # @return [Boolean]
      def held? = !!@held

      # @param headers [Hash{String => String}]
      # @param parameters [Hash{String => String}] beside the topic
      # @return [Stream] whose head may not be there yet; to be closed
      # @raise [ConnectionFailed]
      def subscribe(headers: {}, **parameters)
        client.stream([["match", topic], *parameters.map { |name, value| [name.to_s, value] }], headers: bearer(:subscriber).merge(headers))
      end

      # Private where readers have a token that was made for the topic: the readers of everything are not to be bothered.
      #
      # @param data [String]
      # @return [Publication]
      # @raise [ConnectionFailed] also when it is not accepted
      def publish(data = "{\"hikyaku\":\"doctor\"}")
        form = [["topic", topic], ["data", data]]
        form << %w[private on] if @tokens.key?(:subscriber) && !credentials.given?(:subscriber)
        answer = client.request("POST", headers: bearer(:publisher), form: form)
        raise ConnectionFailed, "#{place}: a publish was answered with #{answer.status}" unless answer.status == 200
        Publication.new(answer.body.dup.force_encoding(Encoding::UTF_8), answer.sent_at, answer.head_at, answer)
      end

      # @param role [Symbol]
      # @return [Hash{String => String}] the header that carries the role's token, if there is one
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
