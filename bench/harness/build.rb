# frozen_string_literal: true

require "fileutils"
require "open3"

module Bench
  # Compiles the programs of bench/harness/src with the system's C compiler, when their sources are newer.
  module Build
    SOURCES = File.expand_path("src", __dir__)
    LINK = File.expand_path("../link", __dir__)
    BINARIES = File.expand_path("bin", __dir__)
    FLAGS = %w[-std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -Wconversion -Wshadow].push("-I#{SOURCES}").freeze
    PROGRAMS = {
      "pin" => %w[pin],
      "floor" => %w[floor net],
      "load" => %w[
        cable flags inflated lines load loop marker memory net options process publishers report request response samples
        subscribe_request subscribers template
      ],
      "getter" => %w[answer flags getter loop memory net process samples],
      "queue_load" => %w[
        clients dialect dialect_amqp dialect_beanstalkd dialect_hikyaku dialect_nats dialect_redis flags loop memory net process
        queue_load queue_options queue_report samples wire
      ],
      "broker_floor" => %w[broker_floor floor_frames floor_queues floor_text loop net wire],
      "append" => %w[append samples],
      "sends" => %w[net sends],
      "stream" => %w[net stream],
      "shaper" => %w[flags link/lane link/shaper],
      "probe" => %w[samples link/probe],
      "bulk" => %w[net link/bulk]
    }.freeze

    # What a program can be without: compiled with it first, and where that fails, without.
    OPTIONAL = {"load" => %w[-DBENCH_ZLIB -lz]}.freeze

    LOCK = Mutex.new # links are measured in several threads
    private_constant :LOCK

    # A compiler that is missing, or that refuses the sources.
    class Failed < StandardError
    end

    class << self
      # @param name [String] one of {PROGRAMS}
      # @return [String] the path of the program, compiled if need be
      # @raise [Failed] with what the compiler said
      def program(name)
        path = File.join(BINARIES, name)
        LOCK.synchronize { compile(name, path) unless fresh?(path) }
        path
      end

      # Compiles in any case.
      #
      # @return [String] what the compiler said: nothing, when all is well
      # @raise [Failed]
      def compile(name, path)
        FileUtils.mkdir_p(File.dirname(path))
        sources = PROGRAMS.fetch(name).map { |base| source(base) }
        partial = "#{path}.#{Process.pid}"
        said, status = compiled(partial, sources, OPTIONAL.fetch(name, []))
        said, status = compiled(partial, sources, []) if OPTIONAL.key?(name) && !status.success?
        raise Failed, "cannot compile #{name}:\n#{said}" unless status.success?
        File.rename(partial, path)
        said
      rescue Errno::ENOENT
        raise Failed, "the benchmarks need a C compiler: install gcc or clang, or name one in CC"
      end

      private

      def compiled(partial, sources, more) = Open3.capture2e(ENV.fetch("CC", "cc"), *FLAGS, "-o", partial, *sources, *more)

      def source(base) = "#{base.start_with?("link/") ? File.join(File.dirname(LINK), base) : File.join(SOURCES, base)}.c"

      def fresh?(path)
        File.exist?(path) && Dir[File.join(SOURCES, "*.[ch]"), File.join(LINK, "*.[ch]")].all? { |source| File.mtime(source) <= File.mtime(path) }
      end
    end
  end
end
