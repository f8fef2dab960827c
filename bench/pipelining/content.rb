# frozen_string_literal: true

require "fileutils"
require_relative "sheet"

module Bench
  # The pages and their images as files, which are made once.
  module Content
    FOLDER = File.expand_path("../../tmp/bench/pipelining", __dir__)
    VERSION = "1" # another when the bytes are
    LOCK = Mutex.new
    private_constant :LOCK

    class << self
      # @param sheets [Array<Sheet>]
      # @return [String] the folder in which they are
      def prepare(*sheets)
        root = File.join(FOLDER, VERSION)
        LOCK.synchronize { sheets.each { |sheet| write_sheet(root, sheet) } }
        root
      end

      private

      def write_sheet(root, sheet)
        return if File.exist?(File.join(root, sheet.path))
        sheet.images.each_with_index { |path, number| write(File.join(root, path)) { Image.bytes(sheet.size, number) } }
        write(File.join(root, sheet.path)) { sheet.html }
      end

      # Whole or not at all: another process may do the same.
      def write(path)
        return if File.exist?(path)
        FileUtils.mkdir_p(File.dirname(path))
        partial = "#{path}.#{Process.pid}"
        File.binwrite(partial, yield)
        File.rename(partial, path)
      end
    end
  end
end
