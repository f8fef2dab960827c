# frozen_string_literal: true

require "open3"

# Asks the engine in C through one of the programs test/engine/*_dump.c, which is compiled when it is needed.
class EngineDump
  ROOT = File.expand_path("../..", __dir__)
  private_constant :ROOT

  # @param name [String] "topic" for test/engine/topic_dump.c
  def initialize(name)
    compiler = ENV.fetch("CC", "cc")
    output, status = Open3.capture2e("make", "-C", File.join(ROOT, "ext/hikyaku/engine"), "dumps", "DUMPS=#{name}_dump", "CC=#{compiler}")
    raise output unless status.success?

    @program = File.join(ROOT, "tmp/engine", File.basename(compiler), "plain/bin/#{name}_dump")
  end

  # @param fields [Array<String>] what the program reads, see there
  # @return [Array<String>] the lines that it prints
  def ask(fields)
    input = fields.map { |field| [field.bytesize].pack("N") + field.b }.join
    output, errors, status = Open3.capture3(@program, stdin_data: input, binmode: true)
    raise "#{@program}: #{status}: #{errors}" unless status.success?

    output.lines(chomp: true)
  end
end
