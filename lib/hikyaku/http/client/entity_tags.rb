# frozen_string_literal: true

module Hikyaku
  module HTTP
    class Client
      # The entity tags that resources were known by lately: see {ResponseMatcher.doubt}. All of it while the driver's lock is held.
      class EntityTags
        MOST_URLS = 1_000
        MOST_OF_A_URL = 4
        MAX_BYTES = 128
        NONE = [].freeze
        private_constant :MOST_URLS, :MOST_OF_A_URL, :MAX_BYTES, :NONE

        def initialize
          @known = {}
        end

        def etag(url) = @known.fetch(url, NONE)

        def note(url, tag)
          return if tag.bytesize > MAX_BYTES
          @known[url] = [*((@known.delete(url) || NONE) - [tag]), tag].last(MOST_OF_A_URL)
          @known.shift if @known.size > MOST_URLS
        end
      end
    end
  end
end
