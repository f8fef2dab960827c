# frozen_string_literal: true

require_relative "codec/accept"
require_relative "codec/coding"
require_relative "codec/errors"
require_relative "codec/json"
require_relative "codec/message_pack"

module Hikyaku
  # The representations that an object may have on its way to a client: JSON, and MessagePack where the gem msgpack is there. Which one, the client says.
  #
  #     format = Hikyaku::Codec.negotiate(env["HTTP_ACCEPT"])  # => a Format; nil: 406
  #     format.media_type                                      # => "application/vnd.msgpack"
  #     format.dump({"name" => "Ada", "born" => Time.now})     # => bytes
  #     Hikyaku::Codec[:msgpack].load(bytes, max_bytes: 65_536)
  module Codec
    JSON_FORMAT = JSON.new
    MESSAGE_PACK_FORMAT = MessagePack.new
    BY_NAME = {"json" => JSON_FORMAT, "msgpack" => MESSAGE_PACK_FORMAT, "mpac" => MESSAGE_PACK_FORMAT}.freeze
    private_constant :JSON_FORMAT, :MESSAGE_PACK_FORMAT, :BY_NAME

    class << self
      # @param name [Symbol, String] json, msgpack, or mpac, which is the same as msgpack
      # @return [Format]
      # @raise [UnknownFormat]
      # @raise [Unavailable] its gem is not there
      def [](name)
        format = BY_NAME[name.to_s]
        raise UnknownFormat, "the format #{name.to_s[0, 40].inspect} is not known; json, msgpack and mpac (the same) are" unless format
        format.there!
      end

      # @return [Array<Format>] those that can be used here, the one that the server would choose first
      def formats = MessagePack.available? ? [JSON_FORMAT, MESSAGE_PACK_FORMAT] : [JSON_FORMAT]

      # Chooses a format by what a request says.
      #
      # RFC 9110, section 12.5.1.
      #
      # @param accept [String, Array<String>, nil] the field Accept
      # @param offered [Array<Format>] the first is what a client gets that accepts anything
      # @return [Format, nil] nil: none is accepted, for which there is 406 and {NotAcceptable}
      def negotiate(accept, offered = formats)
        Accept.parse(accept).choose(offered)
      end
    end
  end
end
