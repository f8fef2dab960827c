# frozen_string_literal: true

require "test_helper"
require "tmpdir"
require "hikyaku/log/journal/files"

class JournalFilesTest < Minitest::Test
  # A file of a disk that has lost what was written, and says so once.
  class Lost
    attr_reader :asked

    def initialize = @asked = []

    def fsync
      @asked << :fsync
      raise Errno::EIO if @asked.one?
      0
    end

    # As IO#fdatasync: Ruby asks again, by the other name.
    def fdatasync
      fsync
    rescue Errno::EIO
      fsync
    end
  end

  test "a sync that fails is asked for once, and said" do
    Dir.mktmpdir do |folder|
      file = Lost.new
      assert_raises(Errno::EIO) { Hikyaku::Log::Journal::Files.new(folder).sync_data(file) }
      assert_equal [:fsync], file.asked
    end
  end
end
