# frozen_string_literal: true

# Writes the journals of this folder. Only after a change of the format: they are what every journal is tested against. It lays the
# bytes itself, from docs/journal.md, and uses nothing of the journal but its checksum. README.md says what the lines mean.

require_relative "../../../lib/hikyaku/log/crc32c"

# The folder of one journal, and what opening it comes to.
class JournalVector
  IDENTITY = (1..16).to_a.pack("C*")
  WHEN = 1_795_000_000_000
  SIZE = 65_536
  MARK = 1
  ENDING = 2
  CLOSE = 3
  DROPPED = 4
  SKIP = 5

  # One segment in the making.
  class Segment
    attr_reader :number, :bytes, :offset, :position, :records
    attr_accessor :identity

    def initialize(number, first, salt: 0x5A17_0000 + number, size: SIZE, identity: IDENTITY, under: nil)
      @number = number
      @position = first
      @salt = salt
      header = ["HKJ\r\n\x1A\n\x01", identity, number, first, salt, WHEN + number, size].pack("a8a16Q<Q<Q<Q<L<")
      @bytes = under ? under.bytes.dup : "\0".b * size
      @bytes[0, 64] = header + [Hikyaku::Log::CRC32C.of(header)].pack("L<")
      @offset = 64
      @records = []
    end

    # Appends a record of the log, or one of the journal's own, which takes no position.
    def record(type, body, flags: 0, position: @position, type_takes: type >= 16)
      rest = [position, type, flags, 0, body.bytesize ^ 0xffffffff].pack("Q<CCS<L<") + body.b
      checksum = Hikyaku::Log::CRC32C.of([@salt].pack("Q<") + rest)
      whole = [body.bytesize, checksum].pack("L<L<") + rest
      @records << [position, type, flags, number, @offset + 24, body.b] if type_takes
      @position += 1 if type_takes
      lay(whole + "\0".b * (-whole.bytesize % 8))
      self
    end

    def lay(bytes)
      @bytes[@offset, bytes.bytesize] = bytes
      @offset += bytes.bytesize
      self
    end

    # The journal's own, with what is known to be on the disk.
    def mark(synced, type = MARK) = record(type, [synced, WHEN + 1000 + @offset].pack("Q<Q<"))

    def ending(synced) = mark(synced, ENDING)

    def close(synced = @position - 1) = mark(synced, CLOSE)

    def dropped(*numbers) = record(DROPPED, numbers.pack("Q<*"))

    def batch(synced, *bodies)
      mark(synced)
      bodies.each_with_index { |body, i| record(32 + i % 4, body, flags: i % 3) }
      self
    end

    # So many bytes are not read, and nothing up to this position is there.
    def skip(size, position)
      record(SKIP, "?" * (size - 24), position: position)
      @position = position
      self
    end

    # Changes one byte.
    def flip(offset) = tap { @bytes.setbyte(offset, @bytes.getbyte(offset) ^ 0x20) }

    # The last record becomes one that nobody reads, because it is not there or stands behind the end.
    def forget(count = 1) = tap { @records.pop(count) }

    # The record of this position is not read, because it does not verify.
    def without(position) = tap { @records.reject! { |record| record.first == position } }

    def name = format("journal-%020d.seg", number)
  end

  def self.all = @all ||= []

  def self.vector(name, about, &block)
    all << new(name, about).tap { |vector| vector.instance_eval(&block) }
  end

  attr_reader :name

  def initialize(name, about)
    @name = name
    @about = about
    @files = {}
    @outcome = []
  end

  def segment(number, first, **options) = Segment.new(number, first, **options)

  def put(*segments) = segments.each { |segment| @files[segment.name] = segment.bytes }

  def file(name, bytes) = @files[name] = bytes

  def checkpoint(synced:, newest:, first: 1, dropped: [], identity: IDENTITY)
    bytes = ["HKC\r\n\x1A\n\x01", identity, synced, newest, first, WHEN + 5000, dropped.size, *dropped].pack("a8a16Q<Q<Q<Q<L<Q<*")
    @files["checkpoint"] = bytes + [Hikyaku::Log::CRC32C.of(bytes)].pack("L<")
  end

  # It is opened: these segments' records are replayed, and this segment is begun at this position.
  def opens(*segments, begins:, at:)
    @outcome << "opens #{begins} #{at}"
    segments.flat_map(&:records).each do |position, type, flags, number, offset, body|
      @outcome << "record #{position} #{type} #{flags} #{number} #{offset} #{short(body)}"
    end
  end

  def refused(name, offset) = @outcome << "corrupt #{name} #{offset}"

  def to_s
    files = @files.sort.flat_map { |name, bytes| ["file #{name} #{bytes.bytesize}", *pieces(bytes)] }
    [*@about.lines.map { |line| "# #{line.chomp}" }, *files, *@outcome].join("\n") << "\n"
  end

  private

  # What is not zero: in lines of up to 64 bytes, or as the byte of which there are many, and how many.
  def pieces(bytes)
    blocks = bytes.unpack("a64" * (bytes.bytesize / 64.0).ceil).each_with_index
    blocks.slice_when { |(block, _), (following, _)| block != following || !block.match?(/\A([^\0])\1{63}\z/n) }.filter_map do |same|
      piece = same.map(&:first).join.sub(/\0+\z/n, "")
      "at #{same.first.last * 64} #{short(piece)}" unless piece.empty?
    end
  end

  def short(bytes)
    return "-" if bytes.empty?
    return "#{bytes.unpack1("H2")}*#{bytes.bytesize}" if bytes.bytesize > 64 && bytes.match?(/\A(.)\1+\z/mn)
    bytes.unpack1("H*")
  end

  vector("empty", "A folder with nothing in it.") { opens(begins: 1, at: 1) }

  vector("begun", "The first segment was begun, and nothing written to it.") do
    put one = segment(1, 1)
    checkpoint(synced: 0, newest: 1)
    opens(one, begins: 2, at: 1)
  end

  vector("closed", "One segment of three batches, closed in order. Bodies of all lengths modulo 8, an empty one too.") do
    put one = segment(1, 1).batch(0, "first", "").batch(2, *(1..8).map { |i| "x" * i }).batch(2, "\u00E9\0\xFF\n".b, "last").close
    checkpoint(synced: 12, newest: 1)
    opens(one, begins: 2, at: 13)
  end

  vector("killed", "As the process left it when it was killed: whole, but not closed.") do
    put one = segment(1, 1).batch(0, "one").batch(1, "two", "three")
    checkpoint(synced: 0, newest: 1)
    opens(one, begins: 2, at: 4)
  end

  vector("no_checkpoint", "It was killed before the first checkpoint was written.") do
    put one = segment(1, 1).batch(0, "one")
    opens(one, begins: 2, at: 2)
  end

  vector("largest", "A body as large as a segment holds.") do
    put one = segment(1, 1).mark(0).record(33, "L" * (SIZE - 168)).ending(0)
    put two = segment(2, 2).batch(1, "next")
    checkpoint(synced: 1, newest: 2)
    opens(one, two, begins: 3, at: 3)
  end

  vector("two_segments", "END, and the next segment goes on. A record of 0 flags and one of 255.") do
    put one = segment(1, 1).batch(0, "one", "two").ending(1)
    put two = segment(2, 3).mark(2).record(16, "three").record(63, "four", flags: 255)
    checkpoint(synced: 2, newest: 2)
    opens(one, two, begins: 3, at: 5)
  end

  vector("closed_and_opened", "Closed, opened again, which begins a segment, and closed.") do
    put one = segment(1, 1).batch(0, "one").close
    put two = segment(2, 2).close
    put three = segment(3, 2).batch(1, "two").close
    checkpoint(synced: 2, newest: 3)
    opens(one, two, three, begins: 4, at: 3)
  end

  vector("torn_tail", "The last record was on its way to the disk: its second half is not there.") do
    one = segment(1, 1).batch(0, "one").batch(1, "two", "t" * 600).forget
    one.bytes[one.offset - 300, 300] = "\0".b * 300
    put one
    checkpoint(synced: 1, newest: 1)
    opens(one, begins: 2, at: 3)
  end

  vector("torn_mark", "The first sector of a batch is not there, the second is, and nothing says that any of it was synced: what is whole behind it counts.") do
    one = segment(1, 1).batch(0, "a" * (512 - 64 - 40 - 24))
    start = one.offset
    one.batch(0, "b" * 600, "c").batch(0, "d").without(2)
    one.bytes[start, 512] = "\0".b * 512
    put one
    checkpoint(synced: 0, newest: 1)
    opens(one, begins: 2, at: 5)
  end

  vector("torn_twice", "Two records do not verify, and nothing says that they were synced. One of them is as small as a record can be.") do
    one = segment(1, 1).batch(0, "one")
    offset = one.offset
    one.batch(1, "", "three", "four")
    put one.flip(offset + 40 + 16).flip(offset + 40 + 24 + 32 + 20).batch(1, "five").without(2).without(4)
    checkpoint(synced: 1, newest: 1)
    opens(one, begins: 2, at: 6)
  end

  vector("torn_where_nothing_is_missing", "A MARK does not verify: no position is missing.") do
    one = segment(1, 1).batch(0, "one")
    offset = one.offset
    put one.batch(1, "two", "three").flip(offset + 30)
    checkpoint(synced: 1, newest: 1)
    opens(one, begins: 2, at: 4)
  end

  vector("torn_and_not_begun", "The newest segment was begun, its records are not there, and the one before has records behind what is torn, but not to its end.") do
    one = segment(1, 1).batch(0, "one")
    offset = one.offset
    put one.batch(1, "two", "three", "four").flip(offset + 45).without(2).flip(one.offset - 30).without(4)
    put segment(2, 5)
    checkpoint(synced: 1, newest: 1)
    opens(one, begins: 2, at: 4)
  end

  vector("torn_before_dropped", "A DROPPED behind what is torn does not count: what it relies on may be missing.") do
    one = segment(1, 1).batch(0, "one").ending(1)
    two = segment(2, 2).batch(1, "two")
    offset = two.offset
    put one, two.batch(1, "copy of one").flip(offset + 45).without(3).dropped(1).record(32, "four")
    checkpoint(synced: 2, newest: 2)
    opens(one, two, begins: 3, at: 5)
  end

  vector("skipped", "What was torn was found so, and the journal went on behind it.") do
    put one = segment(1, 1).batch(0, "one").skip(24, 2).batch(1, "two").skip(80, 5).batch(2, "five")
    put two = segment(2, 6).batch(5, "six")
    checkpoint(synced: 5, newest: 2)
    opens(one, two, begins: 3, at: 7)
  end

  vector("skipped_backwards", "A SKIP to a position that is there already does not count, and nothing behind it can.") do
    put one = segment(1, 1).batch(0, "one", "two").skip(40, 2).record(32, "again", position: 2).forget
    checkpoint(synced: 2, newest: 1)
    opens(one, begins: 2, at: 3)
  end

  vector("torn_in_the_middle", "A batch in the middle is not whole, and the one behind it says that it was synced.") do
    one = segment(1, 1).batch(0, "one")
    offset = one.offset
    put one.batch(1, "two", "three").batch(3, "four").flip(offset + 65)
    checkpoint(synced: 0, newest: 1)
    refused(one.name, offset + 40)
  end

  vector("less_than_the_checkpoint", "The tail looks torn, but the checkpoint says that it was synced.") do
    one = segment(1, 1).batch(0, "one", "two")
    put one.flip(one.offset - 8)
    checkpoint(synced: 2, newest: 1)
    refused(one.name, one.offset - 32)
  end

  vector("closed_and_damaged", "CLOSE is there, a record before it is not.") do
    one = segment(1, 1).batch(0, "one", "two").close
    put one.flip(64 + 40 + 24)
    checkpoint(synced: 0, newest: 1)
    refused(one.name, 64 + 40)
  end

  vector("damaged_close", "CLOSE itself does not verify: all that was synced is there.") do
    one = segment(1, 1).batch(0, "one", "two").close
    put one.flip(one.offset - 8)
    checkpoint(synced: 2, newest: 1)
    opens(one, begins: 2, at: 3)
  end

  vector("after_close", "A batch stands behind CLOSE.") do
    one = segment(1, 1).batch(0, "one").close
    offset = one.offset
    put one.batch(1, "two")
    checkpoint(synced: 1, newest: 1)
    refused(one.name, offset)
  end

  vector("repaired_before", "The tail of the first segment was torn in a crash; the second was begun to repair it, and goes on.") do
    one = segment(1, 1).batch(0, "one").batch(0, "two", "never").forget
    put one.flip(one.offset - 4)
    put two = segment(2, 3).batch(2, "three")
    checkpoint(synced: 2, newest: 2)
    opens(one, two, begins: 3, at: 4)
  end

  vector("does_not_go_on", "The first segment has lost its end, and the second begins further on.") do
    one = segment(1, 1).batch(0, "one").batch(1, "two", "three").ending(3)
    put one.flip(64 + 40 + 32 + 40 + 24)
    put segment(2, 4).batch(3, "four")
    checkpoint(synced: 3, newest: 2)
    refused(one.name, 64 + 40 + 32 + 40)
  end

  vector("gap_after_the_end", "The first segment ended well, but the second begins further on.") do
    put segment(1, 1).batch(0, "one").ending(1)
    put segment(2, 3).batch(1, "three")
    checkpoint(synced: 1, newest: 2)
    refused("journal-00000000000000000002.seg", 32)
  end

  vector("damaged_end", "END itself does not verify; the next segment goes on where the first ends.") do
    one = segment(1, 1).batch(0, "one").ending(1)
    put one.flip(one.offset - 9)
    put two = segment(2, 2).batch(1, "two")
    checkpoint(synced: 1, newest: 2)
    opens(one, two, begins: 3, at: 3)
  end

  vector("dropped_and_gone", "The second of three was dropped, says the third, and is gone.") do
    put one = segment(1, 1).batch(0, "one").ending(1)
    put three = segment(3, 4).mark(3).dropped(2).record(32, "four")
    checkpoint(synced: 3, newest: 3)
    opens(one, three, begins: 4, at: 5)
  end

  vector("dropped_says_the_checkpoint", "The second of three was dropped, says the checkpoint, and is gone.") do
    put one = segment(1, 1).batch(0, "one").ending(1)
    put three = segment(3, 4).batch(3, "four")
    checkpoint(synced: 3, newest: 3, dropped: [2])
    opens(one, three, begins: 4, at: 5)
  end

  vector("dropped_and_there", "The first and the second were dropped; only the first is still there. It is not replayed: what freed its records was in the second.") do
    put segment(1, 1).batch(0, "one", "two").ending(1)
    put three = segment(3, 5).mark(4).dropped(1, 2).record(32, "five")
    checkpoint(synced: 4, newest: 3)
    opens(three, begins: 4, at: 6)
  end

  vector("dropped_and_damaged", "A segment that was dropped is still there, and damaged: nobody needs it.") do
    put segment(1, 1).batch(0, "one", "two").ending(1).flip(70)
    put two = segment(2, 3).mark(2).dropped(1).record(32, "three")
    checkpoint(synced: 2, newest: 2)
    opens(two, begins: 3, at: 4)
  end

  vector("dropped_to_come", "DROPPED names its own segment and segments to come: that says nothing.") do
    put one = segment(1, 1).batch(0, "one").dropped(1, 2, 3, 7)
    checkpoint(synced: 0, newest: 1)
    opens(one, begins: 2, at: 2)
  end

  vector("below_the_first", "What stands before the first segment that the checkpoint needs is not read.") do
    put segment(1, 1).batch(0, "one").ending(1)
    put two = segment(2, 2).batch(1, "two")
    checkpoint(synced: 2, newest: 2, first: 2)
    opens(two, begins: 3, at: 3)
  end

  vector("missing", "The second of three is not there, and nobody dropped it.") do
    put segment(1, 1).batch(0, "one").ending(1)
    put segment(3, 4).batch(3, "four")
    checkpoint(synced: 3, newest: 3)
    refused("journal-00000000000000000002.seg", 0)
  end

  vector("missing_behind_a_torn_one", "The first has no end, and the second, dropped and gone, cannot say that it had none: its records may be lost.") do
    one = segment(1, 1).batch(0, "one")
    put one
    put segment(3, 4).batch(3, "four")
    checkpoint(synced: 3, newest: 3, dropped: [2])
    refused(one.name, one.offset)
  end

  vector("missing_first", "The first is not there, and nobody dropped it.") do
    put segment(2, 2).batch(1, "two")
    checkpoint(synced: 1, newest: 2)
    refused("journal-00000000000000000001.seg", 0)
  end

  vector("missing_newest", "The newest that the checkpoint names is not there.") do
    put segment(1, 1).batch(0, "one").ending(1)
    checkpoint(synced: 1, newest: 2)
    refused("journal-00000000000000000002.seg", 0)
  end

  vector("nothing_but_a_checkpoint", "There was a journal.") do
    checkpoint(synced: 1, newest: 1)
    refused("journal-00000000000000000001.seg", 0)
  end

  vector("damaged_header", "The header of the only segment does not verify.") do
    put one = segment(1, 1).batch(0, "one").flip(50)
    refused(one.name, 0)
  end

  vector("damaged_header_behind_an_end", "The newest segment's header does not verify, and the one before has its END.") do
    put segment(1, 1).batch(0, "one").ending(1)
    put two = segment(2, 2).batch(1, "two").flip(60)
    checkpoint(synced: 1, newest: 1)
    refused(two.name, 0)
  end

  vector("damaged_header_not_begun", "The newest segment's header does not verify, and the one before was not ended: it goes.") do
    put one = segment(1, 1).batch(0, "one")
    put segment(2, 2).flip(40)
    checkpoint(synced: 0, newest: 1)
    opens(one, begins: 2, at: 2)
  end

  vector("begun_too_early", "The newest segment was begun, but the tail of the one before never came to the disk: it goes, and the END that was torn off does not count.") do
    one = segment(1, 1).batch(0, "one").batch(1, "two", "three")
    offset = one.offset
    put one.ending(1).flip(offset - 10).forget
    put segment(2, 4)
    checkpoint(synced: 1, newest: 1)
    opens(one, begins: 2, at: 3)
  end

  vector("used_again", "The segment was another one before: what stands behind the end has another salt.") do
    old = segment(1, 1, salt: 77).batch(0, *(1..20).map { |i| "old #{i} " * 9 }).ending(20)
    put three = segment(3, 40, under: old).batch(39, "new", "newer")
    checkpoint(synced: 39, newest: 3, first: 3)
    opens(three, begins: 4, at: 42)
  end

  vector("used_again_in_step", "As before, and the old records stand at the very offsets and positions where new ones are due.") do
    old = segment(1, 1, salt: 77).batch(0, "aa", "bb").batch(2, "cc")
    put one = segment(1, 1, salt: 78, under: old).batch(0, "AA", "BB")
    checkpoint(synced: 0, newest: 1)
    opens(one, begins: 2, at: 3)
  end

  vector("wrong_position", "A record verifies, but is not the one that is due.") do
    put one = segment(1, 1).batch(0, "one").record(32, "three", position: 3).forget
    checkpoint(synced: 1, newest: 1)
    opens(one, begins: 2, at: 2)
  end

  vector("unknown_type", "A record of a type that nobody knows counts as one that does not verify.") do
    one = segment(1, 1).batch(0, "one")
    put one.record(9, "12345678").record(32, "two")
    checkpoint(synced: 1, newest: 1)
    opens(one, begins: 2, at: 3)
  end

  vector("impossible_length", "A length that its inverse does not confirm, and one that goes beyond the end of the segment.") do
    one = segment(1, 1).batch(0, "one")
    one.lay([SIZE, 0, 2, 32, 0, 0, SIZE ^ 0xffffffff].pack("L<L<Q<CCS<L<"))
    put one.lay([8, 0, 2, 32, 0, 0, 8].pack("L<L<Q<CCS<L<"))
    checkpoint(synced: 1, newest: 1)
    opens(one, begins: 2, at: 2)
  end

  vector("dirty_padding", "What pads a record to a multiple of 8 is no part of it.") do
    one = segment(1, 1).batch(0, "one")
    put one.flip(one.offset - 1)
    checkpoint(synced: 1, newest: 1)
    opens(one, begins: 2, at: 2)
  end

  vector("damaged_checkpoint", "The checkpoint does not verify.") do
    put segment(1, 1).batch(0, "one")
    checkpoint(synced: 1, newest: 1)
    @files["checkpoint"].setbyte(30, 1)
    refused("checkpoint", 0)
  end

  vector("cut_checkpoint", "The checkpoint is too short.") do
    put segment(1, 1).batch(0, "one")
    checkpoint(synced: 1, newest: 1)
    file("checkpoint", @files["checkpoint"].byteslice(0, 30))
    refused("checkpoint", 0)
  end

  vector("empty_checkpoint", "The checkpoint is there, and has nothing in it.") do
    put segment(1, 1).batch(0, "one")
    file("checkpoint", "".b)
    refused("checkpoint", 0)
  end

  vector("another_identity", "A segment of another journal.") do
    put segment(1, 1).batch(0, "one").ending(1)
    put two = segment(2, 2, identity: "another journal!").batch(1, "two")
    checkpoint(synced: 1, newest: 2)
    refused(two.name, 8)
  end

  vector("another_name", "A segment whose header has another number than its name.") do
    put segment(1, 1).batch(0, "one").ending(1)
    file("journal-00000000000000000002.seg", segment(3, 2).bytes)
    checkpoint(synced: 1, newest: 2)
    refused("journal-00000000000000000002.seg", 24)
  end

  vector("cut_segment", "A segment is shorter than its header says.") do
    one = segment(1, 1).batch(0, "one")
    put one
    file(one.name, one.bytes.byteslice(0, 40_000))
    checkpoint(synced: 1, newest: 1)
    refused(one.name, 40_000)
  end

  vector("cut_header", "A segment is shorter than a header.") do
    one = segment(1, 1)
    file(one.name, one.bytes.byteslice(0, 20))
    refused(one.name, 0)
  end

  vector("other_sizes", "Segments of different sizes.") do
    put one = segment(1, 1).batch(0, "one").ending(1)
    put two = segment(2, 2, size: 2 * SIZE).batch(1, "2" * SIZE).ending(1)
    put three = segment(3, 3).batch(2, "three")
    checkpoint(synced: 2, newest: 3)
    opens(one, two, three, begins: 4, at: 4)
  end

  vector("strangers", "What is not the journal's is left alone; what it was making is deleted.") do
    put one = segment(1, 1).batch(0, "one")
    file("notes.txt", "mine\n")
    file("spare-00000000000000000002.tmp", "\0".b * 4096)
    file("checkpoint.tmp", "HKC")
    file("journal-00000000000000000007.seg.damaged", "set aside")
    file("journal-8.seg", "no name of ours")
    file("other.tmp", "mine, too")
    opens(one, begins: 2, at: 2)
  end
end

if $PROGRAM_NAME == __FILE__
  JournalVector.all.each { |vector| File.write(File.join(__dir__, "#{vector.name}.txt"), vector.to_s) }
end
