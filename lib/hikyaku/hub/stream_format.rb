# frozen_string_literal: true

require_relative "../error"
require_relative "stream_format/events"
require_relative "stream_format/message_pack"

module Hikyaku
  # A stream was requested in a format or with a content coding that no hub has. The message lists those that exist.
  class UnknownStreamFormat < ArgumentError
    include Error
  end

  # The engine cannot write a stream in the requested format or content coding. The message says what to do.
  class UnsupportedStreamFormat < StandardError
    include Error
  end

  class Hub
    # The formats in which an engine can write a stream.
    module StreamFormat
      NAMES = %i[events message_pack].freeze
      # Content codings (RFC 9110, section 8.4.1).
      CODINGS = %i[identity gzip].freeze

      module_function

      def check!(name, coding)
        raise UnknownStreamFormat, "there is no stream format #{name.inspect}: use #{NAMES.join(" or ")}" unless NAMES.include?(name)
        raise UnknownStreamFormat, "streams have no coding #{coding.inspect}: use #{CODINGS.join(" or ")}" unless CODINGS.include?(coding)
      end

      def check_naming!(name)
        raise UnsupportedStreamFormat, "only Server-Sent Events name the matchers that selected them: use the format :events" unless name == :events
      end
    end
  end
end
