# frozen_string_literal: true

require "securerandom"

module Hikyaku
  module Log
    # Turns positions into opaque event ids and back: `#` and the base64url of the enciphered position,
    # 12 characters. No index is needed to find such an id again, and it tells nothing about how many events there
    # were or when (Mercure draft-08, "Authorization on Event Replay", asks for opaque ids).
    #
    # The cipher is Speck64/128 (27 rounds, 64-bit block, 128-bit key): a few additions, rotations and
    # exclusive-ors, so the C engine makes the same bytes without a library. The key is random for each
    # log, so an id of another log deciphers to a position that this one never had.
    class PositionCipher
      MASK = 0xffffffff
      ROUNDS = 27
      private_constant :MASK, :ROUNDS

      def initialize(key: SecureRandom.bytes(16))
        raise ArgumentError, "a log's key has 16 bytes, this one #{key.bytesize}" unless key.bytesize == 16
        @round_keys = expand(key.unpack("L<4"))
      end

      def seal(position)
        x = position >> 32
        y = position & MASK
        # Rotations, as products and quotients: for those Ruby calls no method, and each publish comes here.
        @round_keys.each do |key|
          x = ((x / 0x100 + x * 0x1000000 + y) & MASK) ^ key
          y = (((y * 8) & MASK) + y / 0x20000000) ^ x
        end
        "##{[[x, y].pack("L>2")].pack("m0").tr("+/", "-_").chop}".freeze
      end

      def open(id)
        return unless id.bytesize == 12 && id.b.match?(/\A#[A-Za-z0-9_-]{11}\z/n)
        encoded = id.byteslice(1, 11)
        bytes = "#{encoded.tr("-_", "+/")}=".unpack1("m")
        return unless bytes.bytesize == 8
        x, y = bytes.unpack("L>2")
        @round_keys.reverse_each do |key|
          y ^= x
          y = ((y >> 3) | (y << 29)) & MASK
          x = ((x ^ key) - y) & MASK
          x = ((x << 8) | (x >> 24)) & MASK
        end
        position = (x << 32) | y
        # The last character carries two spare bits: only the spelling that we made is ours.
        position if seal(position) == id
      end

      def inspect = "#<#{self.class.name}>"

      private

      # The words of Speck's key schedule, least significant first: k0, l0, l1, l2.
      def expand(words)
        key, *l = words
        ROUNDS.times.map do |i|
          round_key = key
          word = l.shift
          word = ((key + (((word >> 8) | (word << 24)) & MASK)) & MASK) ^ i
          l << word
          key = (((key << 3) | (key >> 29)) & MASK) ^ word
          round_key
        end.freeze
      end
    end
  end
end
