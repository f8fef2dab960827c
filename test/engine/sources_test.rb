# frozen_string_literal: true

require "test_helper"
require "open3"

# Holds the engine in C to the table "The layers of the engine in C" of ARCHITECTURE.md, and to what RULES.md asks of C.
class EngineSourcesTest < Minitest::Test
  ROOT = File.expand_path("../..", __dir__)
  FOLDER = File.join(ROOT, "ext/hikyaku/engine")
  PATHS = Dir["{,*/}hk_*.{c,h}", base: FOLDER].sort.to_h { |path| [File.basename(path), path] }.freeze
  FILES = PATHS.keys.freeze
  INCLUDES = [FOLDER, *Dir[File.join(FOLDER, "*/")]].map { |folder| "-I#{folder}" }.freeze
  LAYERS = File.read(File.join(ROOT, "ARCHITECTURE.md"))[/^## The layers of the engine in C$.*?(?=^## |\z)/m]
    .scan(/^\| (\w+) \| (`.*) \|$/).to_h { |layer, parts| [layer, parts.scan(/`(\w+)`/).flatten] }.freeze
  PARTS = LAYERS.values.flatten.freeze
  # Without the loop: what copies, compares and formats bytes, what says which instructions there are, and what compilers add.
  USED = /\A(?:hk_\w+|mem\w+|str(?:len|chr|cmp|ncmp)|snprintf|getauxval|__(?:mem\w+|snprintf)_chk|__stack_chk_fail|_GLOBAL_OFFSET_TABLE_)\z/
  ALLOCATES = /\A(?:malloc|calloc|realloc|free|strn?dup|v?asprintf|posix_memalign|aligned_alloc)\z/
  STOPS_OR_PRINTS = /\A(?:abort|_?exit|__assert_fail|v?f?printf|__v?f?printf_chk|f?puts|f?putc|putchar|fwrite|perror|stdout|stderr)\z/
  # zlib's, which gets its memory from hk_alloc.
  COMPRESSES = /\A(?:deflate(?:Init2_|Reset|Bound|End)?|crc32_z)\z/
  private_constant :ROOT, :FOLDER, :PATHS, :FILES, :INCLUDES, :LAYERS, :PARTS, :USED, :ALLOCATES, :STOPS_OR_PRINTS, :COMPRESSES

  test "every file belongs to a part of the table, and every part has its header" do
    assert_empty FILES.reject { |file| part_of(file) }, "in no part of ARCHITECTURE.md"
    assert_empty PARTS.map { |part| "#{part}.h" } - FILES, "in ARCHITECTURE.md alone"
  end

  test "every file is in the folder of its layer" do
    assert_empty(PATHS.reject { |file, path| File.dirname(path) == LAYERS.keys[layer_of(part_of(file))] })
  end

  test "headers include what stands before them, and files what their layer may know" do
    wrong = FILES.flat_map do |file|
      included(file).reject { |header| may_include?(file, header) }.map { |header| "#{file} includes #{header}" }
    end
    assert_empty wrong
  end

  test "every header can be included alone, twice, and by clang and gcc alike" do
    headers = FILES.grep(/\.h\z/) + ["hikyaku.h"]
    code = headers.map { |header| %(#include "#{header}"\n) }
    compilers = %w[gcc clang cc].select { |name| Availability.path_of(name) }.first(2)
    (code + [code.join * 2]).product(compilers) do |text, compiler|
      output, status = Open3.capture2e(compiler, *%w[-std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -fsyntax-only -x c], *INCLUDES, "-",
        stdin_data: text)
      assert status.success?, "#{compiler}: #{text}#{output}"
    end
  end

  test "no file is longer than 600 lines or wider than 120 columns" do
    long = FILES.select { |file| lines(file).size > 600 }
    wide = FILES.flat_map { |file| lines(file).each_index.select { |at| lines(file)[at].chomp.size > 120 }.map { |at| "#{file}:#{at + 1}" } }
    assert_empty long + wide
  end

  test "the library has no variables, only constants" do
    variables = objects.flat_map do |object|
      rows = nm("-f", "sysv", object).lines.map { |line| line.split("|").map(&:strip) }
      # Constants that hold addresses are written once, by the linker, when code may lie anywhere.
      rows.select { |row| row[2]&.match?(/\A[bBdDC]\z/) && !row[6].to_s.start_with?(".data.rel.ro") }.map { |row| "#{File.basename(object)}: #{row[0]}" }
    end
    assert_empty variables
  end

  test "memory comes from hk_alloc alone, nothing stops the process or prints, and only the loop calls the system" do
    wrong = objects.flat_map do |object|
      part = part_of(File.basename(object))
      used = nm("-u", object).scan(/\bU (\S+)/).flatten.map { |name| name[/\A[^@]+/] }
      used.reject { |name| may_use?(part, name) }.map { |name| "#{File.basename(object)} uses #{name}" }
    end
    assert_empty wrong
  end

  # Compiled as `make check` compiles them.
  def self.objects
    @objects ||= begin
      compiler = ENV.fetch("CC", "cc")
      output, status = Open3.capture2e("make", "-C", FOLDER, "lib", "CC=#{compiler}")
      raise output unless status.success?

      FILES.grep(/\.c\z/).map { |file| File.join(ROOT, "tmp/engine", File.basename(compiler), "plain", file.sub(/c\z/, "o")) }
    end
  end

  private

  def lines(file) = File.readlines(File.join(FOLDER, PATHS.fetch(file)), encoding: "UTF-8")

  def included(file) = lines(file).filter_map { |line| line[/^\s*#\s*include\s+"([^"]+)"/, 1] }

  # The longest name that the file's begins with.
  def part_of(file) = PARTS.select { |part| file.start_with?(part) }.max_by(&:size)

  def layer_of(part) = LAYERS.values.index { |parts| parts.include?(part) }

  def may_include?(file, header)
    part, other = part_of(file), part_of(header)
    return other && part == other if header.end_with?("_private.h") || !part || !other

    file.end_with?(".h") ? PARTS.index(other) <= PARTS.index(part) : layer_of(other) <= layer_of(part)
  end

  def may_use?(part, name)
    return part == "hk_alloc" if name.match?(ALLOCATES)
    return part == "hk_gzip" if name.match?(COMPRESSES)
    return false if name.match?(STOPS_OR_PRINTS)

    name.match?(USED) || LAYERS.fetch("loop").include?(part)
  end

  def objects = self.class.objects

  def nm(*arguments)
    output, status = Open3.capture2e("nm", *arguments)
    status.success? ? output : flunk(output)
  end
end
