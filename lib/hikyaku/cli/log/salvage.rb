# frozen_string_literal: true

require_relative "folder"
require_relative "../../log/journal/salvage"

module Hikyaku
  module CLI
    class Log < Command
      # `hikyaku log salvage`
      class Salvage < Folder
        summary "Keep what is whole of a damaged journal: its records are written into new segments, and damaged files are set aside as *.damaged."
        usage "hikyaku log salvage [OPTION…] DIR"
        examples(
          "hikyaku log salvage /var/lib/hikyaku",
          "hikyaku log salvage --yes /var/lib/hikyaku"
        )

        private

        def options(parser)
          parser.separator("\n  DIR   #{DIR};\n        nobody may use the journal\n\nWithout --yes it says what is lost, and changes nothing.\n\nWhat:")
          parser.on("--yes", "Do it") { @yes = true }
        end

        def look_into(path)
          salvage = Journal::Salvage.new(path)
          if salvage.sound?
            stdout.puts("#{path} is sound: there is nothing to be done")
            return 0
          end
          stdout.puts("#{path} is damaged:")
          report(salvage)
          return carry_out(path, salvage) if @yes
          stdout.puts("Nothing was changed. To keep these records: copy the folder if you can, then hikyaku log salvage --yes #{path}")
          1
        ensure
          salvage&.close
        end

        def report(salvage)
          salvage.damages.each { |damage| stdout.puts("DAMAGE: #{damage.name}, offset #{damage.offset}: #{damage.reason}") }
          salvage.survey.losses.each { |loss| stdout.puts("LOST: #{loss.name}, #{part(loss)}#{positions(loss)}") }
          stdout.puts("#{count(salvage.survey.size, "record")} can be kept.")
        end

        def part(loss) = loss.from ? "offsets #{loss.from} to #{loss.to - 1}" : "the whole file"

        def positions(loss)
          return "" if loss.positions.empty?
          ": " + loss.positions.map { |range| (range.size == 1) ? "position #{range.first}" : "positions #{range.first} to #{range.last - 1}" }.join(", ")
        end

        def carry_out(path, salvage)
          aside = salvage.carry_out { |written| stderr.puts("#{digits(written)} records written") }
          stdout.puts("Done: #{count(salvage.survey.size, "record")} kept#{", set aside: #{aside.join(", ")}" if aside.any?}")
          0
        end
      end
    end
  end
end
