# frozen_string_literal: true

require_relative "announcement"

module Hikyaku
  class Hub
    class NativeEngine
      # The grants that the engine was given, with their compiled forms: each Grant object and each matcher is compiled once as long
      # as it is used. What only this table holds is released whenever the table has doubled, and by `sweep`.
      class Grants
        # Unused entries that the table may have.
        SPARE = 1_024
        # Entries that are checked at a time under the engine's lock.
        SLICE = 1_024
        Entry = Struct.new(:grant, :compiled)
        private_constant :SPARE, :SLICE, :Entry

        def initialize(topics:, documents:, gap_policy:, &engine)
          @announcement = Announcement.new(topics, documents) if documents
          @gap_policy = gap_policy
          @engine = engine
          @tags = {}.compare_by_identity
          @entries = {}
          @matchers = {}
          @tag = 0
          @max_entries = @max_matchers = SPARE
        end

        def [](tag) = @entries[tag]&.grant

        def compile(grant)
          tag = @tags[grant]
          (tag ? @entries[tag] : add(grant)).compiled
        end

        attr_reader :tag

        def tags = @entries.filter_map { |tag, entry| tag if yield entry.grant }

        def size = @entries.size

        # Releases what is not used. Returns how many entries there were.
        def sweep
          before = @entries.size + @matchers.size
          sweep_entries
          sweep_matchers
          before - @entries.size - @matchers.size
        end

        private

        def add(grant)
          sweep_entries if @entries.size >= @max_entries
          sweep_matchers if @matchers.size >= @max_matchers
          tag = @tag += 1
          subscriptions = grant.matchers.map do |matcher|
            [compiled(matcher), @announcement&.call(matcher, grant.payload_of(matcher))]
          end
          made = @engine.call(:_grant, tag, subscriptions, all(grant.reads), all(grant.publishes), grant.subject, grant.expires_at)
          @tags[grant] = tag
          @entries[tag] = Entry.new(grant, made)
        end

        def all(matchers) = matchers.uniq.map { |matcher| compiled(matcher) }

        def compiled(matcher)
          @matchers[matcher] ||= begin
            kind, *anchor = matcher.anchor
            origin, prefix = (kind == :url) ? anchor : [nil, anchor.first]
            close = @gap_policy && @gap_policy.call(matcher) == :close
            @engine.call(:_matcher, matcher.type, matcher.pattern, kind, matcher.program, origin, prefix, matcher.cost, matcher.bytes, close)
          end
        end

        def sweep_entries
          unused(@entries.keys, @entries.values.map(&:compiled)) { |tag| @tags.delete(@entries.delete(tag).grant) }
          @max_entries = 2 * @entries.size + SPARE
        end

        def sweep_matchers
          unused(@matchers.keys, @matchers.values) { |matcher| @matchers.delete(matcher) }
          @max_matchers = 2 * @matchers.size + SPARE
        end

        def unused(keys, compiled)
          keys.zip(compiled).each_slice(SLICE) do |slice|
            slice.zip(@engine.call(:_let_go, slice.map(&:last))) { |(key, _), held| yield key unless held }
          end
        end
      end

      private_constant :Grants
    end
  end
end
