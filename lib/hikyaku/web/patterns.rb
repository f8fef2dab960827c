# frozen_string_literal: true

require_relative "../error"
require_relative "../hub/matcher"
require_relative "../support/generational_cache"

module Hikyaku
  class Web
    # Makes the matchers that a request asks for. Compiling one takes time in proportion to its bytes and its instructions, so a
    # request may only have so much compiled; those that somebody uses, or that were compiled lately, are not compiled again.
    # What matching them costs afterwards is limited, too: docs/topic-program.md, section "Cost".
    class Patterns
      # What an entry takes beside its matcher.
      OVERHEAD = 300
      # Readers without a token may have the limits divided by this.
      ANONYMOUS = 4
      private_constant :OVERHEAD, :ANONYMOUS

      def initialize(hub, config, max_bytes: 8_388_608)
        @hub = hub
        @limits = {max_bytes: config.max_pattern_bytes, max_instructions: config.max_pattern_instructions}
        @max_work = config.max_pattern_work
        @max_cost = config.max_pattern_cost
        @cache = Support::GenerationalCache.new(max_bytes) { |_, matcher| OVERHEAD + matcher.bytes }
      end

      def matchers(asked, anonymous:)
        share = anonymous ? ANONYMOUS : 1
        work = cost = 0
        asked.map do |type, pattern|
          matcher = known(type, pattern)
          unless matcher
            check_work(work += pattern.bytesize, @max_work / share, pattern)
            matcher = compile(type, pattern)
            check_work(work += matcher.instructions, @max_work / share, pattern)
          end
          check_cost(cost += matcher.cost, @max_cost / share, pattern)
          matcher
        end
      end

      def inspect = "#<#{self.class.name}>"

      private

      def known(type, pattern)
        return @hub.matcher(type, pattern, **@limits) if type == "exact"
        @cache[[type, pattern]] || @hub.matcher_in_use(type, pattern)
      end

      def compile(type, pattern)
        # A hundred of them take long, and other threads are to have their turn between them.
        Thread.pass
        @cache.store([type, pattern].freeze, @hub.matcher(type, pattern, **@limits))
      end

      def check_work(work, most, pattern)
        return if work <= most
        raise LimitExceeded, "to compile the patterns up to #{Hub::Matcher.shown(pattern)} takes #{work} bytes and instructions, more than the #{most} that are allowed for one request: " \
          "ask for fewer or shorter patterns"
      end

      def check_cost(cost, most, pattern)
        return if cost <= most
        raise LimitExceeded, "the patterns up to #{Hub::Matcher.shown(pattern)} cost #{cost} steps for each byte of a topic, more than the #{most} that are allowed for one reader: " \
          "use fewer or simpler patterns"
      end
    end
  end
end
