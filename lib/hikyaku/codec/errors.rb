# frozen_string_literal: true

require_relative "../error"

module Hikyaku
  module Codec
    # There is no format of this name. The message names those that there are.
    class UnknownFormat < KeyError
      include Error
    end

    # What was asked for needs a gem that is not there. The message names the gem.
    class Unavailable < StandardError
      include Error
    end

    # Bytes that are not what they are said to be, or that no honest client sends. The message says what and where.
    class Malformed < StandardError
      include Error
    end

    # Bytes that would become more than the limit allows. The message names the limit.
    class TooLarge < Malformed
    end

    # An object that no representation can be made of. The message says what and where; it never has the value itself.
    class Unrepresentable < ArgumentError
      include Error
    end

    # An array was to be streamed, and how many items it has was not said, or said wrongly.
    class WrongCount < ArgumentError
      include Error
    end

    # Nothing that is offered is what the client accepts. The message names what is offered, for the body of a 406.
    #
    # RFC 9110, section 15.5.7.
    class NotAcceptable < StandardError
      include Error

      # @return [Array<Format>]
      attr_reader :formats

      # @param formats [Array<Format>] what is offered
      def initialize(formats)
        @formats = formats
        super("nothing that the field Accept asks for is offered; there is #{formats.map { |format| "#{format.media_type} (#{format.name})" }.join(" and ")}")
      end
    end
  end
end
