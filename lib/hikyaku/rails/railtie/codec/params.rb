# frozen_string_literal: true

module Hikyaku
  class Railtie < ::Rails::Railtie
    module CodecGlue
      # Makes params of a request's body in MessagePack. What JSON could not say is refused, but for times and bytes.
      class Params
        MAX_BYTES = 8 * 1024 * 1024
        # As deep as JSON.parse goes.
        MAX_DEPTH = 100
        MAX_ITEMS = 250_000
        private_constant :MAX_BYTES, :MAX_DEPTH, :MAX_ITEMS

        def initialize(max_bytes: MAX_BYTES, max_depth: MAX_DEPTH, max_items: MAX_ITEMS)
          @limits = {max_bytes: max_bytes, max_depth: max_depth, max_items: max_items}.freeze
        end

        # Where Rails logs a body that cannot be read. Before ActionDispatch::Request.
        module Unreadable
          private

          # The bytes are none that a log could have, and it is not known what is in them.
          def log_parse_error_once
            return super unless content_mime_type == CodecGlue.mime
            @parse_error_logged ||= logger&.debug("Error occurred while parsing request parameters: #{raw_post.bytesize} bytes that should be MessagePack")
          end
        end

        def call(bytes)
          data = Codec[NAME].load(bytes, **@limits)
          data.is_a?(Hash) ? data : {_json: data}
        end
      end
    end
  end
end
