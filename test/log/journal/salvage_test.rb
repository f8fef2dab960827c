# frozen_string_literal: true

require "test_helper"
require "fileutils"
require "hikyaku/log/journal"
require "hikyaku/log/journal/salvage"
require "minitest/mock"
require "support/journal_vectors"
require "tmpdir"

class JournalSalvageTest < Minitest::Test
  Journal = Hikyaku::Log::Journal
  CALLS = %i[create write sync sync_folder rename unlink link lock].freeze

  def setup
    @folder = Dir.mktmpdir("salvage")
  end

  def teardown = FileUtils.rm_rf(@folder)

  # The files of a salvage, of which the n-th call fails.
  def failing(at)
    Journal::Salvage::Originals.new(@folder).tap do |files|
      count = 0
      CALLS.each do |name|
        files.define_singleton_method(name) do |*arguments|
          raise Errno::EIO if (count += 1) == at
          super(*arguments)
        end
      end
    end
  end

  def salvage(files = nil)
    return Journal::Salvage.new(@folder).tap(&:carry_out).close unless files
    Journal::Salvage::Originals.stub(:new, files) do
      Journal::Salvage.new(@folder).carry_out
      true
    rescue Journal::Failed
      false
    end
  end

  def records
    bodies = []
    Journal.open(@folder, segment_bytes: 65_536) { |record| bodies << record.body }.close
    bodies
  end

  test "whichever call of a salvage fails, the journal is refused as before or saved, and the next one saves it" do
    vector = JournalVectors["does_not_go_on"]
    at = 0
    done = false
    outcomes = Hash.new(0)
    until done
      FileUtils.rm_rf(Dir[File.join(@folder, "*")])
      vector.write(@folder)
      done = salvage(failing(at += 1))
      begin
        assert_equal %w[one three four], records, "call #{at}"
        outcomes[:saved] += 1
      rescue Journal::Corrupt
        outcomes[:refused] += 1
        salvage
        assert_equal %w[one three four], records, "call #{at}"
      end
      aside = Dir[File.join(@folder, "*.damaged")]
      assert(aside.any? { |path| File.binread(path) == vector.files["journal-00000000000000000001.seg"] }, "call #{at}")
    end
    assert_operator outcomes[:refused], :>, 10
    assert_operator outcomes[:saved], :>, 2
  end

  test "what was salvaged goes on like any journal" do
    JournalVectors["torn_in_the_middle"].write(@folder)
    salvage
    journal = Journal.open(@folder, segment_bytes: 65_536)
    journal.append(32, 0, "five")
    journal.write
    journal.abandon
    assert_equal %w[one three four five], records
    assert_equal %w[one three four five], records
  end

  test "random damage anywhere loses only records that it touched" do
    random = Random.new(12)
    bodies = Array.new(300) { |i| "#{i}:#{random.bytes(random.rand(600))}" }
    12.times do |round|
      FileUtils.rm_rf(Dir[File.join(@folder, "*")])
      journal = Journal.open(@folder, segment_bytes: 65_536)
      touched = []
      places = bodies.map do |body|
        journal.append(40, 0, body)
        2.times { journal.write && journal.sync } if journal.appended % 10 == 0
        journal.place
      end
      journal.close
      segment = 1 + random.rand(places.last >> 32)
      at = random.rand(65_000)
      size = 1 + random.rand(2_000)
      path = File.join(@folder, Journal::Format.segment_name(segment))
      File.write(path, random.bytes(size).byteslice(0, 65_536 - at), at)
      bodies.each_with_index do |body, i|
        first = (places[i] & 0xffffffff) - 24
        touched << i if places[i] >> 32 == segment && first < at + size && first + 24 + body.bytesize > at
      end
      salvaged = Journal::Salvage.new(@folder)
      salvaged.carry_out unless salvaged.sound?
      salvaged.close
      kept = records
      lost = bodies.each_index.reject { |i| kept.include?(bodies[i].b) }
      assert_empty lost - touched, "round #{round}"
      assert_equal bodies.map(&:b) - lost.map { |i| bodies[i].b }, kept, "round #{round}"
    end
  end

  def path(number) = File.join(@folder, Journal::Format.segment_name(number))

  def swap(one, other)
    File.rename(path(one), path(0))
    File.rename(path(other), path(one))
    File.rename(path(0), path(other))
  end

  # Segments of a journal with these bodies, which was closed or killed.
  def fill(bodies, close: true)
    FileUtils.rm_rf(Dir[File.join(@folder, "*")])
    journal = Journal.open(@folder, segment_bytes: 65_536)
    bodies.each do |body|
      journal.append(40, 0, body)
      2.times { journal.write && journal.sync } if journal.appended % 10 == 0
    end
    yield journal if block_given?
    close ? journal.close : journal.abandon
    Dir[File.join(@folder, "*.seg")].size
  end

  def long_bodies = Array.new(300) { |i| format("%04d:", i) + "x" * 1000 }

  def damages = Journal::Recovery.new(Journal::Files.new(@folder)).damages

  test "names of segments that were mixed up lose no record" do
    bodies = long_bodies
    [[2, 3], [1, 2], [1, 4], [-1, 2], [-1, -2], [-3, 2]].product([true, false]).each do |(one, other), close|
      count = fill(bodies, close: close)
      assert_operator count, :>, 4
      one, other = [one, other].map { |number| (number < 0) ? count + 1 + number : number }
      swap(one, other)
      reasons = damages.to_h { |damage| [damage.name, damage] }
      [one, other].each { |number| assert reasons.key?(File.basename(path(number))), "swapped #{one} and #{other}: #{reasons.keys}" }
      assert_raises(Journal::Corrupt) { records }
      salvaged = Journal::Salvage.new(@folder)
      assert_equal bodies.size, salvaged.survey.size, "swapped #{one} and #{other}"
      assert_empty salvaged.survey.losses, "swapped #{one} and #{other}"
      salvaged.carry_out
      salvaged.close
      assert_equal bodies, records, "swapped #{one} and #{other}"
    end
  end

  test "three names that were mixed up, and damage in one of them, lose only what was damaged" do
    bodies = long_bodies
    fill(bodies)
    File.write(path(3), "damage", 20_000)
    swap(2, 3)
    swap(3, 4)
    salvage
    kept = records
    assert_equal bodies.size - 1, kept.size
    assert_equal bodies & kept, kept
  end

  test "a segment that was dropped does not come back under another's name, and one that is needed is found under its" do
    bodies = long_bodies
    dropped = nil
    places = []
    fill(bodies, close: false) do |journal|
      dropped = File.binread(path(2))
      journal.drop(2)
      4.times { journal.write && journal.sync }
    end
    Journal.open(@folder, segment_bytes: 65_536) { |record| places << record.place }.abandon
    refute_path_exists path(2)
    needed = places.count
    File.binwrite(path(2), dropped)
    swap(2, 3)
    refute_empty damages
    salvaged = Journal::Salvage.new(@folder)
    salvaged.carry_out
    salvaged.close
    assert_equal needed, records.size
    assert_equal bodies.reject { |body| dropped.include?(body) }, records
  end
end
