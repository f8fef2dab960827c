# frozen_string_literal: true

require_relative "memory"

module Hikyaku
  module Codec
    module Rack
      class Compression
        # The media types that are worth compressing: not those that are compressed already, as most pictures are, nor event streams, whose events
        # must leave one by one.
        class Types
          USUAL = %w[
            text/* application/json application/*+json application/x-ndjson application/jsonl application/xml application/*+xml application/javascript
            application/x-javascript application/ecmascript application/wasm application/yaml application/*+yaml application/toml application/sql application/rtf
            application/graphql application/x-www-form-urlencoded application/cbor application/*+cbor application/vnd.msgpack application/msgpack
            application/x-msgpack application/x-mpac image/svg+xml image/bmp image/x-icon image/vnd.microsoft.icon font/ttf font/otf font/collection
            application/vnd.ms-fontobject
          ].freeze
          NEVER = %w[text/event-stream].freeze
          private_constant :NEVER

          def initialize(types)
            @pattern = /\A(?:#{types.map { |type| Regexp.escape(type.downcase).gsub("\\*", "[^/]*") }.join("|")})\z/n
            @known = Memory.new
          end

          def include?(content_type)
            return false unless content_type.is_a?(String)
            @known.fetch(content_type) do
              type = content_type.b[/\A[^;,]*/n].strip.downcase
              @pattern.match?(type) && !NEVER.include?(type)
            end
          end
        end
        private_constant :Types
      end
    end
  end
end
