# frozen_string_literal: true

require "fileutils"
require "open3"

module Bench
  # Compiles the programs of bench/harness/src with the system's C compiler, when their sources are newer.
  module Build
    SOURCES = File.expand_path("src", __dir__)
    BINARIES = File.expand_path("bin", __dir__)
    FLAGS = %w[-std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -Wconversion -Wshadow].freeze
    PROGRAMS = {
      "pin" => %w[pin],
      "floor" => %w[floor net],
      "load" => %w[load loop marker net options process publishers report response samples subscribers]
    }.freeze

    # A compiler that is missing, or that refuses the sources.
    class Failed < StandardError
    end

    class << self
      # @param name [String] "pin", "floor" or "load"
      # @return [String] the path of the program, compiled if need be
      # @raise [Failed] with what the compiler said
      def program(name)
        path = File.join(BINARIES, name)
        compile(name, path) unless fresh?(path)
        path
      end

      # Compiles in any case.
      #
      # @return [String] what the compiler said: nothing, when all is well
      # @raise [Failed]
      def compile(name, path)
        FileUtils.mkdir_p(File.dirname(path))
        sources = PROGRAMS.fetch(name).map { |base| File.join(SOURCES, "#{base}.c") }
        partial = "#{path}.#{Process.pid}"
        said, status = Open3.capture2e(ENV.fetch("CC", "cc"), *FLAGS, "-o", partial, *sources)
        raise Failed, "cannot compile #{name}:\n#{said}" unless status.success?
        File.rename(partial, path)
        said
      rescue Errno::ENOENT
        raise Failed, "the benchmarks need a C compiler: install gcc or clang, or name one in CC"
      end

      private

      def fresh?(path)
        File.exist?(path) && Dir[File.join(SOURCES, "*.[ch]")].all? { |source| File.mtime(source) <= File.mtime(path) }
      end
    end
  end
end
