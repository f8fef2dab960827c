# frozen_string_literal: true

module Hikyaku
  class Hub
    class Storage
      # The newest position, in a file of its own that is written at each append and never synced. It tells whether the journal is
      # complete: the kernel preserves what a killed process has written, but not over a loss of power. So it is valid only in the same
      # run of the kernel, and in the same file: a copy has another inode, and a file that was overwritten by a copy has a later time than
      # the time written in it.
      #
      # docs/journal.md, section "What the hub keeps".
      class Watermark
        NAME = "watermark"
        MAGIC = "HKW\r\n\x1A\n\x02".b.freeze
        FORMAT = "a8a16Q<Q<Q<"
        BYTES = 48
        BOOT = "/proc/sys/kernel/random/boot_id"
        # The clock from which the kernel takes the times of files.
        CLOCK = defined?(Process::CLOCK_REALTIME_COARSE) ? Process::CLOCK_REALTIME_COARSE : Process::CLOCK_REALTIME
        # Nanoseconds by which the written time and that of the file may differ: a few ticks of the kernel.
        TOLERANCE = 20_000_000
        # Attempts to compare the clock with the file's, because the process may be interrupted in between.
        TRIES = 3
        UNTIMED = 0
        private_constant :NAME, :MAGIC, :FORMAT, :BYTES, :BOOT, :CLOCK, :TOLERANCE, :TRIES, :UNTIMED

        # Offset of the position, which is followed by the time at which it was written.
        POSITION_AT = 32

        def self.boot
          [File.read(BOOT).delete("^0-9a-f")].pack("H32")
        rescue SystemCallError
          nil
        end

        attr_reader :file

        def initialize(folder, boot: Watermark.boot)
          @path = File.join(folder, NAME)
          @boot = boot
          @copied = false
        end

        def read
          return unless @boot
          File.open(@path, "rb") do |file|
            magic, boot, inode, position, time = file.read(BYTES).to_s.ljust(BYTES, "\0").unpack(FORMAT)
            next unless magic == MAGIC
            @copied = inode != file.stat.ino || !(time == UNTIMED || unchanged_since?(time, file))
            position if boot == @boot && !copied?
          end
        rescue SystemCallError
          nil
        end

        def copied? = @copied

        # Creates the file. Where that fails, the next start cannot tell whether the journal is complete, and readers get a gap event.
        def begin(position)
          return unless @boot
          @file = File.open(@path, File::RDWR | File::CREAT | File::BINARY, 0o600)
          @timed = true
          @timed = TRIES.times.any? { unchanged_since?(write(position), @file) }
          write(position) unless @timed
        rescue SystemCallError
          give_up
        end

        def timed? = @timed

        def note(position)
          @file&.pwrite([position, time].pack("Q<Q<"), POSITION_AT)
        rescue SystemCallError
          give_up
        end

        def close
          @file&.close
          @file = nil
        end

        private

        def time = @timed ? Process.clock_gettime(CLOCK, :nanosecond) : UNTIMED

        def write(position)
          time.tap { |now| @file.pwrite([MAGIC, @boot, @file.stat.ino, position, now].pack(FORMAT), 0) }
        end

        def unchanged_since?(time, file)
          changed = file.stat.ctime
          ((changed.to_i * 1_000_000_000) + changed.nsec - time).abs <= TOLERANCE
        end

        # The position in the file is out of date.
        def give_up
          close
          File.unlink(@path)
        rescue SystemCallError
          nil
        end
      end
    end
  end
end
