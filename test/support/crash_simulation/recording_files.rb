# frozen_string_literal: true

require "hikyaku/log/journal/files"

module CrashSimulation
  # The system calls of a journal, carried out and recorded, so that PowerCut can compute what would be left of them.
  class RecordingFiles < Hikyaku::Log::Journal::Files
    # In order; a :note has a value that was known at that time.
    attr_reader :calls

    def initialize(path)
      super
      @calls = []
      @ids = {}.compare_by_identity
      @made = 0
      @names = {}
      @lock = Mutex.new
    end

    def note(value) = record(:note, value)

    def create(name)
      super.tap { |file| record(:create, name, identify(file, name, @made += 1)) }
    end

    def open(name)
      super.tap { |file| identify(file, name) }
    end

    def reopen(name)
      super.tap { |file| identify(file, name) }
    end

    def write(file, bytes, offset)
      super.tap { |count| record(:write, id(file), offset, bytes.byteslice(0, count).freeze) }
    end

    def sync_data(file)
      super
      record(:sync, id(file))
    end

    def sync(file)
      super
      record(:sync, id(file))
    end

    def sync_folder
      super
      record(:sync_folder)
    end

    def rename(from, to)
      super
      @names[to] = @names.delete(from) { from }
      record(:rename, from, to)
    end

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
