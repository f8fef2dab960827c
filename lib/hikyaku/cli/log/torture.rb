# frozen_string_literal: true

require "fileutils"
require "tmpdir"
require_relative "folder"
require_relative "torture/kills"
require_relative "torture/power_cuts"

module Hikyaku
  module CLI
    class Log < Command
      # `hikyaku log torture`
      class Torture < Folder
        summary "See whether a journal on this disk survives crashes: it is written in a folder of its own, cut off and killed again and again, and looked at."
        usage "hikyaku log torture [OPTION…] DIR"
        examples(
          "hikyaku log torture /var/lib",
          "hikyaku log torture --seconds 600 /mnt/data"
        )

        SECONDS = 30
        private_constant :SECONDS

        private

        def options(parser)
          @seconds = SECONDS
          parser.separator(<<~TEXT)

              DIR   a folder on the disk in question; what is made there is removed again

              Half of the time the power fails: the system calls of a journal are recorded, and after each of them what a
              disk may hold by then is laid down and opened: all that was synced; of the rest any sectors of 512 bytes, in
              any order. Half of the time a process that writes is killed with signal 9. All that was acknowledged must be
              there. Whether the disk itself keeps what it says that it has synced only a real loss of power can show.

            How:
          TEXT
          value_option(parser, "--seconds SECONDS", "How long (#{SECONDS})") { |text| @seconds = number("--seconds", text) }
          value_option(parser, "--seed NUMBER", "What happens is decided by this number, which is printed (a random one)") { |text| @seed = number("--seed", text) }
        end

        def wanted = "give one on the disk in question"

        def call(path)
          @seed ||= Random.new_seed % 1_000_000 + 1
          stdout.puts("seed #{@seed}, #{count(@seconds, "second")}")
          folder = Dir.mktmpdir("hikyaku-torture-", path)
          complaints = [PowerCuts, Kills].filter_map { |kind| run_part(kind.new(folder, Random.new(@seed))) }
          verdict(complaints)
        rescue SystemCallError => error
          raise Failed, "#{path}: #{error.message}"
        ensure
          FileUtils.rm_rf(folder) if folder
        end

        # @return [String, nil] what is wrong
        def run_part(part)
          deadline = now + @seconds / 2.0
          told = now
          part.run(until_time: deadline) do
            next if now - told < 1
            told = now
            stderr.puts("#{part.name}: #{digits(part.count)}")
          end
          stdout.puts("#{part.name}: #{digits(part.count)}, #{part.complaint || "nothing that was acknowledged was lost"}")
          part.complaint
        end

        def verdict(complaints)
          if complaints.empty?
            stdout.puts("SOUND: the journal kept what it had acknowledged")
            return 0
          end
          stdout.puts("NOT SOUND: please report this with the seed, the file system and the kernel's version")
          1
        end

        def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

        def number(option, text)
          raise UsageError, "#{option}: expected a whole number, 1 or more, got #{text.inspect}" unless text.match?(/\A[1-9]\d{0,8}\z/)
          text.to_i
        end
      end
    end
  end
end
