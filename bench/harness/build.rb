# frozen_string_literal: true

require "fileutils"
require "open3"

module Bench
  # Compiles the programs in C when their sources are newer.
  module Build
    SOURCES = File.expand_path("src", __dir__)
    LINK = File.expand_path("../link", __dir__)
    BINARIES = File.expand_path("bin", __dir__)
    FLAGS = %w[-std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -Wconversion -Wshadow].push("-I#{SOURCES}").freeze
    # Each also contains bench.c.
    PROGRAMS = {
      "floor" => %w[floor], "load" => %w[load publishers subscribers], "queue_load" => %w[dialects queue_load wire], "broker_floor" => %w[broker_floor wire],
      "append" => %w[append], "sends" => %w[sends], "stream" => %w[stream], "shaper" => %w[../../link/lane ../../link/shaper]
    }.freeze
    LIBRARIES = {"load" => %w[-lz]}.freeze
    LOCK = Mutex.new # links are measured in several threads
    private_constant :LOCK

    # The compiler is missing or rejects the sources.
    class Failed < StandardError
    end

    class << self
      # @return [String] the path of the compiled program
      # @raise [Failed]
      def program(name)
        path = File.join(BINARIES, name)
        LOCK.synchronize { compile(name, path) unless fresh?(path) }
        path
      end

      # @return [String] the compiler's output: empty when there are no warnings
      # @raise [Failed]
      def compile(name, path)
        FileUtils.mkdir_p(File.dirname(path))
        sources = [*PROGRAMS.fetch(name), "bench"].map { |base| File.join(SOURCES, "#{base}.c") }
        partial = "#{path}.#{Process.pid}"
        output, status = Open3.capture2e(ENV.fetch("CC", "cc"), *FLAGS, "-o", partial, *sources, *LIBRARIES[name])
        raise Failed, "cannot compile #{name}#{" (zlib's headers are in zlib1g-dev)" if LIBRARIES.key?(name)}:\n#{output}" unless status.success?
        File.rename(partial, path)
        output
      rescue Errno::ENOENT
        raise Failed, "the benchmarks need a C compiler: install gcc or clang, or name one in CC"
      end

      private

      def fresh?(path)
        File.exist?(path) && Dir[File.join(SOURCES, "*.[ch]"), File.join(LINK, "*.[ch]")].all? { |source| File.mtime(source) <= File.mtime(path) }
      end
    end
  end
end
