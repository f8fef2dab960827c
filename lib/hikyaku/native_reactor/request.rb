# frozen_string_literal: true

module Hikyaku
  class NativeReactor
    # A request that the engine could not answer by itself: see Requests. Void as soon as it is answered: then all but
    # `answered?` raise IOError.
    class Request
      # The Rack environment, as Puma makes it. Where `key` is not nil it holds nothing but what decides: of the query
      # component and of the header fields those that a grant may depend on, of the cookies the token's, as REMOTE_ADDR
      # the client's address, whichever proxies that are trusted stand between.
      #
      # @return [Hash{String => Object}] a new one each time; `rack.input` holds the whole body
      def env = _env

      # @return [String, nil] the values that decide, in one binary string; nil when no decision may be remembered
      def key = _key

      # @return [Integer] counts the times that decisions were forgotten: one that was asked for before is not remembered
      def epoch = _epoch

      # @return [Boolean] the client wants to send another request
      def keep_alive? = _keep_alive

      # @return [Boolean] the body was larger than max_body_bytes and is not there; CONTENT_LENGTH says that it was
      def body_too_large? = _body_too_large

      # @return [Boolean]
      def answered? = _answered

      # @return [String] without anything that the client sent
      def inspect = "#<#{self.class.name}#{" answered" if answered?}>"
    end
  end
end
