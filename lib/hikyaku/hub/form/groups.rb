# frozen_string_literal: true

require_relative "group"

module Hikyaku
  class Hub
    class Form
      # The groups of an engine.
      class Groups
        # A context takes about 256 KiB; beyond so many, blocks stand alone.
        LIMIT = 64
        private_constant :LIMIT

        def initialize
          @groups = {}
        end

        # @param form [Form] that compresses
        # @param grant [Grant]
        # @param newest [Integer] the log's newest position
        # @return [Group, nil] nil when it may not share, or there are too many
        def join(form, grant, newest)
          return unless grant.reads.empty?
          key = [form.name, grant.matchers.map { |matcher| [matcher.type, matcher.pattern] }.sort]
          group = @groups[key]
          return if group.nil? && @groups.size >= LIMIT
          group ||= @groups[key] = Group.new(key, newest)
          group.streams += 1
          group
        end

        # @param group [Group, nil]
        # @return [void]
        def leave(group)
          return if group.nil? || (group.streams -= 1) > 0
          @groups.delete(group.key)
        end

        # @return [Integer] how many there are
        def size = @groups.size
      end
    end
  end
end
