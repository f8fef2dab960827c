# frozen_string_literal: true

require_relative "../support/generational_cache"

module Hikyaku
  class Web
    # What parameters ask for, as far as a subscription goes: those that decide, and from which event on. Frozen, and shared by
    # all who send the same query component.
    class SubscriptionParameters
      # Reads query components, and remembers those that came lately: all who look at one page send the same, and to read it
      # again costs more than all else that is done for a subscriber. One that names an event is read and forgotten, since
      # the next names another. Thread-safe.
      class Reader
        # What an entry costs beside its texts.
        OVERHEAD = 600
        COPIES = 3
        private_constant :OVERHEAD, :COPIES

        def initialize(max_bytes: 1_048_576, &read)
          @cache = Support::GenerationalCache.new(max_bytes) { |query, _| OVERHEAD + COPIES * query.bytesize }
          @read = read
        end

        def read(request)
          query = request.query_string
          @cache[query] || @read.call(request.query).tap { |asked| @cache.store(query, asked) unless asked.cursor }
        end

        def size = @cache.size

        def inspect = "#<#{self.class.name}>"
      end

      attr_reader :deciding
      attr_reader :cursor

      def initialize(deciding, cursor)
        @deciding = deciding.each(&:freeze).freeze
        @cursor = cursor
        freeze
      end
    end
  end
end
