# frozen_string_literal: true

require "digest"
require_relative "../error"
require_relative "turbo/after_commit"
require_relative "turbo/settings"

module Hikyaku
  # Turbo Streams over this hub in place of Action Cable: `config.hikyaku.turbo = true` in a Rails application with
  # turbo-rails.
  #
  #     broadcast_append_to … ── Broadcasting ──► after the commit ──► Hikyaku.publish(topic, html, private: true, type: topic)
  #
  #     turbo_stream_from … ── StreamsHelper ──► <hikyaku-stream-source signed-stream-name cursor src>
  #                                                    │ its script
  #                                                  Door: who is it, may they? ──► a token for these topics ──► the hub
  #
  # With the switch off nothing of turbo-rails is touched.
  module Turbo
    PREFIX = "/turbo/streams/"
    # So that a token with as many topics as are allowed stays within what the hub takes.
    MAX_READABLE_BYTES = 80
    private_constant :PREFIX, :MAX_READABLE_BYTES

    @settings = Settings.new
    @authorization = nil

    class << self
      # @return [Settings] of the application
      # @api private
      attr_accessor :settings

      # The topic under which a stream's updates are published. No two streams have the same.
      #
      # @param stream_name [String] what Turbo makes of the streamables
      # @return [String] the name percent-encoded (RFC 3986 section 2.3); of a long one its digest
      def topic(stream_name)
        name = stream_name.b.gsub(/[^A-Za-z0-9._~-]/n) { |byte| format("%%%02X", byte.ord) }
        name = "sha256:#{digest(stream_name)}" if name.bytesize > MAX_READABLE_BYTES
        "#{PREFIX}#{name}".force_encoding(Encoding::UTF_8)
      end

      # Says who may follow a stream. It is asked whenever a page connects and whenever its token is renewed, after the
      # signature of the stream's name was verified; without it the signature suffices.
      #
      #     Hikyaku::Turbo.authorize { |stream_name, request| current_user&.may_see?(stream_name) }
      #
      # The block is asked of the stream that the page would follow: of that which a class has chosen, if turbo_stream_from was given
      # `channel:` and the class did not refuse. A third parameter gets the `data-` attributes of the element, which are signed with its
      # name: as strings, and with `_` for `-`.
      #
      #     Hikyaku::Turbo.authorize { |stream_name, request, params| current_user&.may_see?(stream_name, params[:section]) }
      #
      # A block runs in an instance of ApplicationController that has the request, and has run no callbacks.
      #
      # @param callable [#call, nil] in place of a block
      # @yieldparam stream_name [String]
      # @yieldparam request [ActionDispatch::Request]
      # @yieldparam params [ActiveSupport::HashWithIndifferentAccess{String => String}] to a callable with three parameters
      # @yieldreturn [Boolean]
      # @return [void]
      # @raise [ArgumentError] neither a block nor something that can be called
      def authorize(callable = nil, &block)
        decision = callable || block
        raise ArgumentError, "say who may follow a stream: with a block, or with something that can be called" unless decision.respond_to?(:call)
        @authorization = decision
      end

      # @return [#call, nil] what {authorize} was told, or the settings
      # @api private
      def authorization = @authorization || settings.authorize

      # Forgets what {authorize} was told.
      #
      # @return [void]
      # @api private
      def forget_authorization = @authorization = nil

      # @param streamables [Object, Array]
      # @return [String] the name that Turbo gives their stream
      # @api private
      def name_of(streamables) = ::Turbo::StreamsChannel.send(:stream_name_from, streamables)

      # Publishes what turbo-rails broadcasts, when the transactions that are open have committed.
      #
      # @param stream_name [String]
      # @param content [String] elements `<turbo-stream>`
      # @return [void]
      # @api private
      def publish(stream_name, content)
        topic = topic(stream_name)
        # The type tells a client with several streams on one connection which of them an event is for.
        AfterCommit.call { Hikyaku.publish(topic, content, private: true, type: topic) }
      end

      private

      def digest(text) = Digest::SHA256.base64digest(text).tr("+/", "-_").delete("=")
    end
  end
end
