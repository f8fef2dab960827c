# frozen_string_literal: true

require "hikyaku/log/journal"

module CrashSimulation
  # Kills a process that writes to a journal, again and again: what it had acknowledged through a pipe must be there.
  class Kills
    Journal = Hikyaku::Log::Journal
    SEGMENT_BYTES = 1024 * 1024
    # Segments from which on the oldest are dropped.
    KEPT = 8
    private_constant :Journal, :SEGMENT_BYTES, :KEPT

    # How many processes were killed, and what was lost; nil: nothing.
    attr_reader :count, :complaint

    def initialize(folder, random)
      @folder = File.join(folder, "killed")
      @random = random
      @seed = random.rand(1_000_000)
      @count = 0
      @acknowledged = 0
      @dropped = []
    end

    def name = "kills"

    def run(until_time:)
      Dir.mkdir(@folder)
      until @complaint || Process.clock_gettime(Process::CLOCK_MONOTONIC) >= until_time
        kill_one
        look
        yield
      end
    end

    private

    def kill_one
      reader, writer = IO.pipe
      child = fork do
        reader.close
        write_for_ever(writer)
      ensure
        exit!(1)
      end
      writer.close
      said = reader.gets
      sleep(@random.rand * 0.2)
      Process.kill(:KILL, child)
      Process.wait(child)
      @count += 1
      listen([said, *reader.read.lines].compact.grep(/\n\z/))
    ensure
      reader&.close
    end

    def listen(lines)
      @complaint = "the process that writes could not open its journal" if lines.empty?
      lines.each do |line|
        word, number = line.split
        case word
        when "failed" then @complaint = line.delete_prefix("failed ").strip
        when "written" then @acknowledged = number.to_i
        when "drop" then @dropped << number.to_i
        end
      end
    end

    def write_for_ever(writer)
      random = Random.new(@seed + @count)
      journal = Journal.open(@folder, segment_bytes: SEGMENT_BYTES)
      loop do
        random.rand(1..20).times { journal.append(32, 0, body(journal.appended + 1)) }
        writer.syswrite("written #{journal.write}\n")
        journal.sync if random.rand(4) == 0
        journal.make_space if journal.space_wanted?
        drop(journal, writer) if journal.current - journal.oldest > KEPT
      end
    rescue Hikyaku::Error => error
      writer.syswrite("failed #{error.message}\n")
    end

    def drop(journal, writer)
      number = journal.oldest
      writer.syswrite("drop #{number}\n") if journal.drop(number)
    end

    # What a position holds follows from its number, so that a process need not know what another one wrote.
    def body(position)
      random = Random.new(@seed ^ position)
      random.bytes(random.rand(2_000))
    end

    def look
      return if @complaint
      due = nil
      journal = Journal.open(@folder, segment_bytes: SEGMENT_BYTES) do |record|
        next_due = due || record.position
        # Segments that were dropped leave gaps.
        gap = record.position - next_due
        @complaint ||= "position #{next_due} is not there" if gap != 0 && @dropped.empty?
        @complaint ||= "position #{record.position} is not what was appended" if record.body != body(record.position)
        due = record.position + 1
      end
      @complaint ||= "position #{@acknowledged} was acknowledged as written, and is not there" if journal.appended < @acknowledged
      journal.close
    rescue Hikyaku::Error => error
      @complaint = error.message
    end
  end
end
