# frozen_string_literal: true

require_relative "cli_helper"
require "fileutils"
require "hikyaku/cli/log"
require "hikyaku/log/journal"
require "json"
require "open3"
require "rbconfig"
require "support/journal_vectors"
require "tmpdir"

class CLILogTest < Minitest::Test
  include CommandLine

  Journal = Hikyaku::Log::Journal
  PARTS = %w[check dump salvage].freeze

  def setup
    @folder = Dir.mktmpdir("log")
  end

  def teardown = FileUtils.rm_rf(@folder)

  def lay(name) = JournalVectors[name].tap { |vector| vector.write(@folder) }

  def contents = Dir.children(@folder).sort.to_h { |name| [name, File.binread(File.join(@folder, name))] }

  PARTS.each do |part|
    test "help of log #{part} says how it is called, what it does, and gives examples" do
      out = done("log", part, "--help")
      assert out.start_with?("Usage: hikyaku log #{part} "), out
      assert_match(/^Examples:\n(  hikyaku log #{part} .+\n?)+\z/, out)
      out[/^Examples:.*/m].scan(/--[a-z-]+/).each { |option| assert_match(/^ +#{option}\b/, out) }
      assert_includes done("log", "--help"), part
    end

    test "log #{part} refuses what it cannot understand" do
      assert_equal "give a DIR; see hikyaku log #{part} --help", refused("log", part)
      assert_equal "unexpected \"more\"; see hikyaku log #{part} --help", refused("log", part, @folder, "more")
      assert_equal "unknown option --frobnicate; see hikyaku log #{part} --help", refused("log", part, "--frobnicate", @folder)
      assert refused("log", part, "/does/not/exist", code: 1).start_with?("/does/not/exist: no such folder")
    end
  end

  test "log without a part, or with an unknown one, says what there is" do
    assert_equal "say what is to be done: hikyaku log check|dump|salvage DIR", refused("log")
    assert_equal "unknown command log chek; did you mean check?", refused("log", "chek", @folder)
  end

  test "check says what is there, and that it is sound" do
    lay("dropped_says_the_checkpoint")
    before = contents
    out = done("log", "check", @folder)
    ["2 segments, 128 KiB", "ENQUEUE 1", "ended at offset 176", "synced up to 3", "dropped 2", "newest position 4"].each { |part| assert_includes out, part }
    assert_equal "It is sound.", out.lines.last.chomp
    assert_equal before, contents, "it changes nothing"
  end

  test "check says what is damaged, where, and what to do" do
    lay("torn_in_the_middle")
    result = hikyaku("log", "check", @folder)
    assert_equal 1, result.code
    assert_includes result.out, "DAMAGE: journal-00000000000000000001.seg, offset 176: position 2 is due there, and positions up to 3 were synced\n"
    assert_includes result.out, "hikyaku log salvage #{@folder}"
  end

  test "check gives all of it as JSON" do
    lay("closed")
    answer = JSON.parse(done("log", "check", "--json", @folder))
    assert_equal [true, false, true, 12, 12], answer.values_at("sound", "changed", "closed", "position", "synced")
    assert_equal({"MARK" => 3, "CLOSE" => 1, "ENQUEUE" => 4, "FREE" => 4, "STATE" => 2, "QUEUE" => 2}, answer["segments"].first["records"])
    lay("damaged_checkpoint")
    result = hikyaku("log", "check", "--json", @folder)
    assert_equal 1, result.code
    assert_equal "checkpoint", JSON.parse(result.out)["damages"].first["name"]
  end

  test "check and dump agree with the vectors" do
    JournalVectors.all.each do |vector|
      FileUtils.rm_rf(Dir[File.join(@folder, "*")])
      vector.write(@folder)
      next if vector.files.empty?
      check = hikyaku("log", "check", @folder)
      assert_equal vector.corrupt ? 1 : 0, check.code, vector.name
      assert_includes check.out, "#{vector.corrupt.first}, offset #{vector.corrupt.last}" if vector.corrupt
      next if vector.corrupt
      lines = hikyaku("log", "dump", @folder).out.lines.map { |line| line.split[0, 5] }
      assert_equal vector.records.map { |position, type, flags, segment, offset, body| [position.to_s, Journal::Format.type_name(type), flags.to_s, "#{segment}:#{offset}", body.bytesize.to_s] }, lines
    end
  end

  # The folder that --storage names, with a journal of each kind.
  def lay_both(broker: "closed", hub: "closed")
    {"broker" => broker, "hub" => hub}.to_h do |name, vector|
      FileUtils.mkdir_p(folder = File.join(@folder, name))
      JournalVectors[vector].write(folder)
      [name, folder]
    end
  end

  test "a folder without a journal, or none, is an error that says what to give" do
    PARTS.each do |part|
      assert_equal "#{@folder}: there is no journal in it, and none in broker/ or hub/ there; give the folder that --storage names, or one with a journal",
        refused("log", part, @folder, code: 1)
      assert_equal "/does/not/exist: no such folder; give the folder that --storage names, or one with a journal", refused("log", part, "/does/not/exist", code: 1)
    end
    assert_empty Dir.children(@folder)
    Dir.mkdir(File.join(@folder, "broker"))
    assert_match(/there is no journal in it/, refused("log", "check", @folder, code: 1))
  end

  test "in the folder that --storage names the journals of the hub and of the broker are checked" do
    folders = lay_both
    out = done("log", "check", @folder)
    folders.each_value { |folder| assert_match(/^#{folder}: 1 segment/, out) }
    assert_equal 2, out.scan("It is sound.").size
    answers = done("log", "check", "--json", @folder).lines.map { |line| JSON.parse(line) }
    assert_equal folders.values.sort, answers.map { |answer| answer["folder"] }.sort
    folders.each_key do |name|
      lay_both(name.to_sym => "torn_in_the_middle")
      result = hikyaku("log", "check", @folder)
      assert_equal 1, result.code
      assert_includes result.out, "hikyaku log salvage #{folders[name]} "
    end
  end

  test "a journal that is not there does not hide the other, and is said" do
    folders = lay_both
    FileUtils.rm(Dir[File.join(folders["broker"], "*")])
    result = hikyaku("log", "check", @folder)
    assert_equal [1, "hikyaku: #{folders["broker"]}: there is no journal in it\n"], [result.code, result.err]
    assert_match(/^#{folders["hub"]}: 1 segment/, result.out)
    FileUtils.rmdir(folders["broker"])
    assert_includes done("log", "check", @folder), folders["hub"]
  end

  test "in the folder that --storage names both journals are dumped, the second although the first is damaged" do
    folders = lay_both(broker: "torn_in_the_middle")
    result = hikyaku("log", "dump", @folder)
    assert_equal 1, result.code
    assert_match(/\A#{folders["broker"]}:\n1 .*\n#{folders["hub"]}:\n1 /, result.out)
    assert_match(/\Ahikyaku: #{folders["broker"]}: .* is damaged at offset 176: .*\n\z/, result.err)
  end

  test "in the folder that --storage names what is damaged is salvaged" do
    folders = lay_both(broker: "torn_in_the_middle")
    before = File.binread(File.join(folders["hub"], "journal-00000000000000000001.seg"))
    result = hikyaku("log", "salvage", @folder)
    assert_equal 1, result.code
    assert_includes result.out, "#{folders["hub"]} is sound"
    assert_match(/^#{folders["broker"]} is damaged:\nDAMAGE: /, result.out)
    assert_includes result.out, "hikyaku log salvage --yes #{folders["broker"]}\n"
    assert_includes done("log", "salvage", "--yes", @folder), "Done: 3 records kept"
    assert_equal 2, done("log", "check", @folder).scan("It is sound.").size
    assert_equal before, File.binread(File.join(folders["hub"], "journal-00000000000000000001.seg"))
  end

  test "a folder with a journal of its own is looked at alone" do
    lay("closed")
    FileUtils.mkdir_p(File.join(@folder, "broker"))
    JournalVectors["torn_in_the_middle"].write(File.join(@folder, "broker"))
    refute_includes done("log", "check", @folder), "broker"
  end

  test "something else where a file of the journal should be is named" do
    %w[journal-00000000000000000007.seg lock checkpoint].each do |name|
      FileUtils.rm_rf(Dir[File.join(@folder, "*")])
      lay("torn_in_the_middle")
      FileUtils.rm_f(File.join(@folder, name))
      Dir.mkdir(File.join(@folder, name))
      PARTS.each do |part|
        assert_equal "#{File.join(@folder, name)} is a directory, and the journal has a file there: move it away, and look again", refused("log", part, @folder, code: 1)
      end
    end
  end

  test "a journal in use can be looked at" do
    journal = Journal.open(@folder, segment_bytes: 65_536)
    journal.append(32, 0, "hello")
    journal.write
    assert_includes done("log", "check", @folder), "It is sound."
    assert_match(/\A1 ENQUEUE 0 \d+:\d+ 5 hello\n\z/, done("log", "dump", @folder))
    assert_match(/in use by another process/, refused_salvage)
  ensure
    journal&.abandon
  end

  # A damaged journal that somebody holds.
  def refused_salvage
    FileUtils.mkdir_p(other = File.join(@folder, "other"))
    JournalVectors["closed_and_damaged"].write(other)
    lock = File.open(File.join(other, "lock"), "w").tap { |file| file.flock(File::LOCK_EX) }
    hikyaku("log", "salvage", "--yes", other).err
  ensure
    lock&.close
  end

  test "what is looked at while it is written to is said to be so" do
    lay("closed")
    reads = 0
    writing = Module.new { define_method(:read) { |files, &block| super(files, &block).tap { FileUtils.touch(File.join(files.path, "touched#{reads += 1}")) } } }
    check = Class.new(Hikyaku::CLI::Log::Check) { prepend writing }
    out = StringIO.new
    check.new(stdin: StringIO.new, stdout: out, stderr: StringIO.new, env: {}).send(:look_into, @folder)
    assert_includes out.string, "It was written to meanwhile"
    assert_includes out.string, "It is sound."
    assert_equal 1, reads
    lay("torn_in_the_middle")
    out.truncate(0)
    assert_equal 1, check.new(stdin: StringIO.new, stdout: out, stderr: StringIO.new, env: {}).send(:look_into, @folder)
    assert_includes out.string, "look again when it is not in use"
    assert_equal 4, reads, "it is read again before it is called damaged"
  end

  test "dump shows bodies in one line, without what a terminal would obey" do
    journal = Journal.open(@folder, segment_bytes: 65_536)
    ["\e[31mred\a\r\n\x9B", "\xFF\xFE\0".b, "caf\u00E9 \u202Eevil", "x" * 100, "back\\slash"].each { |body| journal.append(33, 9, body) }
    journal.close
    texts = done("log", "dump", @folder).lines.map { |line| line.chomp.split(" ", 6).last }
    assert_equal ["\\u001b[31mred\\u0007\\u000d\\n\\x9b", "\\xff\\xfe\\u0000", "caf\u00E9 \\u202eevil", "#{"x" * 60}…", "back\\\\slash"], texts
  end

  test "dump shows the records that are asked for" do
    lay("closed")
    positions = ->(*options) { done("log", "dump", *options, @folder).lines.map { |line| line.to_i } }
    assert_equal (1..12).to_a, positions.call
    assert_equal [1, 3, 7, 11], positions.call("--type", "ENQUEUE")
    assert_equal [1, 3, 6, 7, 10, 11], positions.call("--type", "32", "--type", "queue")
    assert_equal [4, 5, 6], positions.call("--from", "4", "--to", "6")
    assert_equal [5, 6], positions.call("--from", "5", "--limit", "2")
    assert_equal [1, 3, 11], positions.call("--type", "MARK")
    assert_equal [13], positions.call("--type", "CLOSE")
    assert_match(/\A--type: expected a number or one of MARK/, refused("log", "dump", "--type", "x", @folder))
    assert_equal "--limit: expected a whole number, 1 or more, got \"0\"", refused("log", "dump", "--limit", "0", @folder)
    assert_equal "--from needs a value", refused("log", "dump", "--from", "--to", "6", @folder)
  end

  test "dump shows what stands before damage, and says that there is more" do
    lay("torn_in_the_middle")
    result = hikyaku("log", "dump", @folder)
    assert_equal [1, 1], [result.code, result.out.lines.size]
    assert_match(/damaged at offset 176: .* what stands behind is not shown/, result.err)
  end

  test "salvage says what it would do, and changes nothing without --yes" do
    lay("torn_in_the_middle")
    before = contents
    result = hikyaku("log", "salvage", @folder)
    assert_equal [1, ""], [result.code, result.err]
    assert_includes result.out, "LOST: journal-00000000000000000001.seg, offsets 176 to 207: position 2\n3 records can be kept.\nNothing was changed."
    assert_equal before, contents
  end

  test "salvage keeps every record that verifies, in order, and sets damaged files aside" do
    expected = {
      "after_close" => %w[one two], "another_identity" => %w[one], "another_name" => %w[one], "closed_and_damaged" => %w[two],
      "cut_checkpoint" => %w[one], "empty_checkpoint" => %w[one], "cut_header" => [], "cut_segment" => %w[one], "damaged_checkpoint" => %w[one], "damaged_header" => %w[one],
      "damaged_header_behind_an_end" => %w[one two], "does_not_go_on" => %w[one three four], "gap_after_the_end" => %w[one three],
      "less_than_the_checkpoint" => %w[one], "missing" => %w[one four], "missing_behind_a_torn_one" => %w[one four], "missing_first" => %w[two],
      "missing_newest" => %w[one], "nothing_but_a_checkpoint" => [], "torn_in_the_middle" => %w[one three four]
    }
    vectors = JournalVectors.all.select(&:corrupt)
    assert_equal expected.keys.sort, vectors.map(&:name)
    vectors.each do |vector|
      FileUtils.rm_rf(Dir[File.join(@folder, "*")])
      vector.write(@folder)
      out = done("log", "salvage", "--yes", @folder)
      assert_includes out, "Done: #{expected[vector.name].size} record", vector.name
      assert_equal "It is sound.", done("log", "check", @folder).lines.last.chomp, vector.name
      if vector.files.key?(vector.corrupt.first)
        assert_equal vector.files[vector.corrupt.first], File.binread(File.join(@folder, "#{vector.corrupt.first}.damaged")), vector.name
      end
      found = []
      Journal.open(@folder, segment_bytes: 65_536) { |record| found << record }.close
      assert_equal expected[vector.name], found.map(&:body), vector.name
      assert_operator found.first.position, :>, vector.records.map(&:first).max || 0 if found.any?
      assert_includes done("log", "salvage", "--yes", @folder), "nothing to be done"
    end
  end

  test "salvage says nothing of positions that only a header speaks of that does not verify" do
    lay("closed")
    File.write(File.join(@folder, "journal-00000000000000009999.seg"), "junk" * 2_000)
    out = hikyaku("log", "salvage", @folder).out
    assert_includes out, "LOST: journal-00000000000000000002.seg, the whole file\n"
    FileUtils.rm(File.join(@folder, "journal-00000000000000000001.seg"))
    out = hikyaku("log", "salvage", @folder).out
    assert_includes out, "LOST: journal-00000000000000000001.seg, the whole file"
    refute_match(/\d{6,} to|to \d{6,}$/, out[/positions.*/].to_s)
  end

  test "salvage of many records fills segments, and finds what stands behind damage" do
    journal = Journal.open(@folder, segment_bytes: 65_536)
    bodies = 400.times.map { |i| "#{i} " * (1 + i % 300) }
    bodies.each do |body|
      journal.append(32, 1, body)
      journal.write && journal.sync
      journal.make_space if journal.space_wanted?
    end
    journal.close
    segments = Dir[File.join(@folder, "*.seg")].sort
    assert_operator segments.size, :>, 3
    File.write(segments[1], "X" * 3_000, 20_000)
    out = done("log", "salvage", "--yes", @folder)
    lost = out[/positions (\d+) to (\d+)/] ? ($1.to_i..$2.to_i).to_a : flunk(out)
    found = []
    Journal.open(@folder, segment_bytes: 65_536) { |record| found << record.body }.close
    assert_equal bodies.each_with_index.reject { |_, i| lost.include?(i + 1) }.map(&:first), found
    assert_operator lost.size, :<, 40
  end

  test "an interrupted salvage leaves the journal as damaged as it was, and is begun again" do
    vector = lay("torn_in_the_middle")
    File.write(File.join(@folder, "salvage"), "2")
    FileUtils.cp(File.join(@folder, "journal-00000000000000000001.seg"), File.join(@folder, "journal-00000000000000000002.seg"))
    assert_raises(Journal::Corrupt) { Journal.open(@folder) }
    assert_includes done("log", "salvage", "--yes", @folder), "Done: 3 records"
    found = []
    Journal.open(@folder, segment_bytes: 65_536) { |record| found << record.body }.close
    assert_equal %w[one three four], found
    refute_includes Dir.children(@folder), "salvage"
    assert_equal vector.files.values.last, File.binread(File.join(@folder, "journal-00000000000000000001.seg.damaged"))
  end
end
