# frozen_string_literal: true

require_relative "announcement"

module Hikyaku
  class Hub
    class NativeEngine
      # The grants that the engine has been given, with what it made of them: each Grant object is compiled once as long as
      # somebody uses it, and so is each matcher. What only this table holds is let go whenever the table has doubled, and by `tidy`.
      class Grants
        # So many that nobody uses may be there.
        SPARE = 1_024
        # So many are looked at under the engine's lock at once.
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
          @most_entries = @most_matchers = SPARE
        end

        def [](tag) = @entries[tag]&.grant

        def compile(grant)
          tag = @tags[grant]
          (tag ? @entries[tag] : add(grant)).compiled
        end

        attr_reader :tag

        def tags = @entries.filter_map { |tag, entry| tag if yield entry.grant }

        def size = @entries.size

        # Lets go of what nobody uses.
        def tidy
          before = @entries.size + @matchers.size
          sweep_entries
          sweep_matchers
          before - @entries.size - @matchers.size
        end

        private

        def add(grant)
          sweep_entries if @entries.size >= @most_entries
          sweep_matchers if @matchers.size >= @most_matchers
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
          @most_entries = 2 * @entries.size + SPARE
        end

        def sweep_matchers
          unused(@matchers.keys, @matchers.values) { |matcher| @matchers.delete(matcher) }
          @most_matchers = 2 * @matchers.size + SPARE
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
