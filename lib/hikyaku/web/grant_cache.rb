# frozen_string_literal: true

require_relative "../support/generational_cache"

module Hikyaku
  class Web
    # Decisions that were taken lately, by the values that decided: whoever sends the same ones shares the grant. The
    # values are compared whole; only what was granted is remembered, never a refusal. Whether the token behind it is
    # still good is asked before, each time.
    class GrantCache
      # What an entry costs beside its texts.
      OVERHEAD = 600
      NOTHING = ->(_, _) { 0 }
      private_constant :OVERHEAD, :NOTHING

      def initialize(max_bytes: 4_194_304)
        @cache = Support::GenerationalCache.new(max_bytes) { |_, (_, _, bytes)| bytes }
      end

      def fetch(access, parameters, bytes: NOTHING)
        key = [access.object_id, parameters]
        known, grant = @cache[key]
        return grant if grant && known.equal?(access)
        yield.tap { |made| @cache.store(key, [access, made, OVERHEAD + parameters.sum { |name, value| name.bytesize + value.bytesize } + bytes.call(made, access)]) }
      end

      # Forgets the decisions about a subject.
      def forget(subject)
        @cache.delete_if { |_, grant| grant.subject == subject }
      end

      def size = @cache.size

      def inspect = "#<#{self.class.name}>"
    end
  end
end
