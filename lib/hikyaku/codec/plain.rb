# frozen_string_literal: true

require_relative "limits"
require_relative "plain/conversion"
require_relative "plain/refusal"

begin
  require "hikyaku/native" # goes through objects
rescue LoadError
  nil # so does Ruby
end

module Hikyaku
  module Codec
    # What both formats can say: nil, true, false, numbers, text, arrays, and hashes with text for keys. Everything else becomes that first, in the way
    # that its `as_json` says.
    module Plain
      # An object, and the options that Active Support gives its as_json and those of its parts: may stand for the object wherever one is written.
      # Exact: refused is what Active Support's encoder may write with other bytes.
      Given = Struct.new(:object, :options, :exact)

      class << self
        def for_message_pack(object) = of(object, Conversion::MESSAGE_PACK)

        def for_json(object) = of(object, Conversion::JSON)

        def native_there? = respond_to?(:native?)

        private

        # Packers believe all that they are given: they would write text that is none, and follow a hash that contains itself until the stack ends.
        # So everything is looked at; in C, where only what is not plain comes to Ruby. Where something is refused, Ruby goes the whole way once more
        # and knows where it was.
        def of(object, conversion)
          object, conversion = object.object, conversion.with(object.options, exact: object.exact) if object.instance_of?(Given)
          return conversion.of(object) unless native_there?
          native(object, Limits::DEPTH, conversion.compact) { |value, levels| conversion.plain(value, levels) }
        rescue Refusal
          conversion.of(object)
        end
      end
    end
  end
end
