# frozen_string_literal: true

module Hikyaku
  class NativeReactor
    # Somebody who has said HELLO to the broker, and waits: see Sessions. It is decided about once; who is forgotten is refused.
    #
    # As Broker::Hello for whoever decides.
    class Hello
      # @return [Integer] of the session
      def serial = parts[0]

      # @return [String] UTF-8; empty: none
      def identity = parts[1]

      # @return [String] binary
      def credentials = parts[2]

      # @return [Integer] of the credentials: 0 none, 1 a secret, 2 a token
      def kind = parts[3]

      # @return [String]
      def agent = parts[4]

      # @return [String] where it comes from; empty on a Unix socket
      def address = parts[5]

      # @return [Boolean]
      def decided? = _decided

      # @return [String] without the credentials
      def inspect = "#<#{self.class.name}#{" decided" if decided?}>"

      private

      def parts = @parts ||= _parts
    end
  end
end
