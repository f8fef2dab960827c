# frozen_string_literal: true

module Hikyaku
  class Hub
    class Storage
      # The newest position that was given to anybody, in a file of its own that is written at each append and never synced. It says
      # whether what is found in the journal is all that there was: the kernel keeps what a process has written when that is
      # killed, but not over a loss of power. So it counts only in the same run of the kernel, and in the file that it was written to:
      # a copy is another file, and a copy that was laid over this one has changed it later than it says.
      #
      # docs/journal.md, section "What the hub keeps".
      class Watermark
        NAME = "watermark"
        MAGIC = "HKW\r\n\x1A\n\x02".b.freeze
        FORMAT = "a8a16Q<Q<Q<"
        BYTES = 48
        BOOT = "/proc/sys/kernel/random/boot_id"
        # The clock of files' times, where it is known.
        CLOCK = defined?(Process::CLOCK_REALTIME_COARSE) ? Process::CLOCK_REALTIME_COARSE : Process::CLOCK_REALTIME
        # Nanoseconds between the time that is written and that of the file: a few ticks of the kernel.
        TOLERANCE = 20_000_000
        # The clock is compared with the file's so often: the process may be interrupted in between.
        TRIES = 3
        UNTIMED = 0
        private_constant :NAME, :MAGIC, :FORMAT, :BYTES, :BOOT, :CLOCK, :TOLERANCE, :TRIES, :UNTIMED

        # Where in the file the position stands, and behind it the time at which it was written.
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

        # From now on it is written. Where that is not possible the next start knows nothing, which costs readers a gap.
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

        # What stands there is not true any more.
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
