# frozen_string_literal: true

require_relative "files"

module Hikyaku
  module Log
    class Journal
      # The system calls of a journal, carried out and written down, for PowerCut to say what would be left of them.
      class Trace < Files
        # @return [Array<Array>] what was done, in order; `:note` and a value is what somebody knew at that time
        attr_reader :calls

        # @param path [String]
        def initialize(path)
          super
          @calls = []
          @ids = {}.compare_by_identity
          @made = 0
          @names = {}
          @lock = Mutex.new
        end

        # @param value [Object] what is known now
        # @return [void]
        def note(value) = record(:note, value)

        # (see Files#create)
        def create(name)
          super.tap { |file| record(:create, name, identify(file, name, @made += 1)) }
        end

        # (see Files#open)
        def open(name)
          super.tap { |file| identify(file, name) }
        end

        # (see Files#reopen)
        def reopen(name)
          super.tap { |file| identify(file, name) }
        end

        # (see Files#write)
        def write(file, bytes, offset)
          super.tap { |count| record(:write, id(file), offset, bytes.byteslice(0, count).freeze) }
        end

        # (see Files#sync_data)
        def sync_data(file)
          super
          record(:sync, id(file))
        end

        # (see Files#sync)
        def sync(file)
          super
          record(:sync, id(file))
        end

        # (see Files#sync_folder)
        def sync_folder
          super
          record(:sync_folder)
        end

        # (see Files#rename)
        def rename(from, to)
          super
          @names[to] = @names.delete(from) { from }
          record(:rename, from, to)
        end

        # (see Files#unlink)
        def unlink(name)
          super
          @names.delete(name)
          record(:unlink, name)
        end

        private

        def record(*call)
          @lock.synchronize { @calls << call }
          nil
        end

        # A file that was there before is known by its name, a new one by a number.
        def identify(file, name, number = nil)
          @names[name] = number if number
          @ids[file] = @names.fetch(name, name)
        end

        def id(file) = @ids.fetch(file)
      end
    end
  end
end
