# frozen_string_literal: true

require "test_helper"
require "fileutils"
require "tmpdir"
require "hikyaku/log/crc32c"
require "hikyaku/log/journal"
require "support/engine_dump"

# What one language has written, dropped and left, the other reads as the first does: records, and what is damaged.
class JournalDifferentialTest < Minitest::Test
  Journal = Hikyaku::Log::Journal
  SEGMENT = 65_536

  def setup
    @engine = EngineDump.new("journal")
    @folder = Dir.mktmpdir
    @random = Random.new(7)
  end

  def teardown = FileUtils.remove_entry(@folder)

  test "journals that both languages take turns to write are the same to both" do
    path = journal_folder
    12.times do |turn|
      steps = random_steps
      turn.even? ? use_c(path, steps) : use_ruby(path, steps)
      read = assert_same(path)
      assert_equal "opened", read.last.split.first
    end
  end

  test "what one refuses after damage the other refuses" do
    corrupt = 30.times.count do |turn|
      path = journal_folder
      turn.even? ? use_c(path, random_steps) : use_ruby(path, random_steps)
      damage(path)
      assert_same(path).last.start_with?("corrupt")
    end
    assert_operator corrupt, :>, 8
  end

  private

  def journal_folder = Dir.mktmpdir(nil, @folder)

  # Letters of journal_dump.c, without those that open.
  def random_steps
    steps = Array.new(10 + @random.rand(40)) do
      case @random.rand(10)
      when 0..5 then ["A", (32 + @random.rand(8)).to_s, @random.bytes(@random.rand((@random.rand(4) == 0) ? 20_000 : 300))]
      when 6 then ["W"]
      when 7 then ["D", (1 + @random.rand(12)).to_s]
      else ["S"]
      end
    end
    # Space is made only by S: there must be a segment for what comes next.
    steps.flat_map { |step| (step[0] == "A" && step[2].bytesize > 1000) ? [step, ["S"]] : [step] } + [[%w[C X].sample(random: @random)]]
  end

  def use_c(path, steps) = @engine.ask([path, "O", *steps.flatten])

  def use_ruby(path, steps)
    journal = open_in_ruby(path)
    steps.each do |letter, *rest|
      case letter
      when "A" then journal.append(rest[0].to_i, 0, rest[1])
      when "W" then journal.write
      when "D" then (rest[0].to_i < journal.current) && journal.drop(rest[0].to_i)
      when "S" then sync(journal)
      when "C" then journal.close
      else journal.abandon
      end
    end
  end

  def sync(journal)
    journal.write
    journal.want_sync(journal.appended)
    while journal.sync_wanted? || journal.space_wanted?
      journal.sync
      journal.make_space
    end
  end

  def open_in_ruby(path, &replay)
    Journal.open(path, segment_bytes: SEGMENT, on_begin: ->(journal) { journal.append(39, 0, "begin") }, &replay)
  end

  # Both open a copy. What they say, once.
  def assert_same(path)
    copies = Array.new(2) { File.join(@folder, "copy#{_1}") }
    copies.each { |copy| FileUtils.cp_r(path, copy) }
    ruby = read_in_ruby(copies[0])
    c = @engine.ask([copies[1], "O"])
    # Where damage is named first, when there are several signs of it, is the vectors' business.
    assert_equal(*[ruby, c].map { |lines| lines.last.start_with?("corrupt") ? "corrupt" : lines })
    ruby
  ensure
    copies.each { |copy| FileUtils.rm_rf(copy) }
  end

  def read_in_ruby(path)
    lines = []
    journal = open_in_ruby(path) do |record|
      lines << "record #{record.position} #{record.type} #{record.flags} #{record.segment} #{record.offset} #{Hikyaku::Log::CRC32C.of(record.body)}"
    end
    lines << "opened #{journal.current} #{journal.appended}"
    journal.abandon
    lines
  rescue Journal::Corrupt => error
    ["corrupt #{error.segment} #{error.offset}"]
  end

  def damage(path)
    name = Dir.children(path).reject { |file| file == "lock" || file.end_with?(".tmp") }.sample(random: @random)
    file = File.join(path, name)
    case @random.rand(6)
    when 0 then File.delete(file)
    when 1 then File.truncate(file, @random.rand(File.size(file)))
    else flip(file)
    end
  end

  # A byte of what has a meaning, in most cases.
  def flip(file)
    bytes = File.binread(file)
    at = @random.rand(bytes.sub(/\0+\z/n, "").bytesize)
    bytes.setbyte(at, bytes.getbyte(at) ^ (1 << @random.rand(8)))
    File.binwrite(file, bytes)
  end
end
