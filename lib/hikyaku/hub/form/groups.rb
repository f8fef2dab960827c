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

        def join(form, grant, newest)
          return unless grant.reads.empty?
          key = [form.name, grant.matchers.map { |matcher| [matcher.type, matcher.pattern] }.sort]
          group = @groups[key]
          return if group.nil? && @groups.size >= LIMIT
          group ||= @groups[key] = Group.new(key, newest)
          group.streams += 1
          group
        end

        def leave(group)
          return if group.nil? || (group.streams -= 1) > 0
          @groups.delete(group.key)
        end

        def size = @groups.size
      end
    end
  end
end
