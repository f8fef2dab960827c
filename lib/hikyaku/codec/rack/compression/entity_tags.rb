# frozen_string_literal: true

module Hikyaku
  module Codec
    module Rack
      class Compression
        # A strong entity tag belongs to one coding of a representation: `"abc"` becomes `"abc-gzip"`, and what a client sends back becomes `"abc"`
        # for the application. A weak one is the same for all codings, and stays.
        #
        # With the coding that this client gets now, and no other: a cache that asks with `"abc-gzip"` for a client that takes no gzip must not be told that it may
        # use that. Whoever changes something (`If-Match`) means the resource, whatever the coding was. The tag of a part (`If-Range`) stays as it is: no part
        # is of a coded representation.
        #
        # RFC 9110, sections 8.8.3.3 and 13.1.
        class EntityTags
          STRONG = /\A"[^"]*"\z/n
          OPAQUE = /"[^"]*"/n
          ANY_MARK = /-(?:gzip|br|zstd)"/n
          MOST_BYTES = 8_192
          IF_NONE_MATCH = "HTTP_IF_NONE_MATCH"
          IF_MATCH = "HTTP_IF_MATCH"
          READING = %w[GET HEAD].freeze
          private_constant :STRONG, :OPAQUE, :ANY_MARK, :MOST_BYTES, :IF_NONE_MATCH, :IF_MATCH, :READING

          def self.marked(headers, name)
            tag = headers["etag"]
            headers["etag"] = mark(tag, name) if tag.is_a?(String) && STRONG.match?(tag.b)
            headers
          end

          def self.mark(tag, name) = "#{tag.byteslice(0, tag.bytesize - 1)}-#{name}\""

          def initialize(env, coding)
            @env = env
            @name = coding.name if coding.respond_to?(:compress)
            @sent = {}
          end

          # The application's own tags stand in the environment while it answers; whoever asked finds what was there.
          def given
            give(IF_NONE_MATCH, own_mark) if @env.key?(IF_NONE_MATCH)
            give(IF_MATCH, reading? ? own_mark : ANY_MARK) if @env.key?(IF_MATCH)
            yield
          ensure
            @env.update(@sent)
          end

          def unmodified(headers)
            tag = headers["etag"]
            tags = @sent[IF_NONE_MATCH]
            return headers unless tags && tag.is_a?(String) && STRONG.match?(tag.b)
            marked = EntityTags.mark(tag, @name)
            tags.b.include?(marked.b) ? headers.merge("etag" => marked) : headers
          end

          def known?(tag)
            tags = @sent[IF_NONE_MATCH]
            return false unless tags && tag.is_a?(String) && reading?
            tags.b.scan(OPAQUE).include?(tag.b.delete_prefix("W/"))
          end

          private

          def reading? = READING.include?(@env["REQUEST_METHOD"])

          def own_mark = @name ? "-#{@name}\"" : nil

          def give(field, mark)
            return unless mark
            tags = @env[field].to_s
            return if tags.bytesize > MOST_BYTES || !tags.b.match?(mark)
            @sent[field] = tags
            @env[field] = tags.b.gsub(mark, '"')
          end
        end
        private_constant :EntityTags
      end
    end
  end
end
