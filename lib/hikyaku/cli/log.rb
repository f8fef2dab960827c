# frozen_string_literal: true

require_relative "command"
require_relative "../log/journal"
require_relative "../log/journal/salvage"

module Hikyaku
  module CLI
    # `hikyaku log`: its subcommands look at a journal, and repair it.
    class Log < Command
      summary "Look at the journals in which a hub and a broker keep their logs; save what is whole of a damaged one."
      usage "hikyaku log check|dump|salvage [OPTION…] DIR"
      examples(
        "hikyaku log check /var/lib/hikyaku",
        "hikyaku log dump /var/lib/hikyaku",
        "hikyaku log salvage /var/lib/hikyaku"
      )

      PARTS = {
        "check" => "Say what is there, and whether it is sound",
        "dump" => "Print the records",
        "salvage" => "Keep what is whole of a damaged journal"
      }.freeze
      private_constant :PARTS

      def run(argv)
        name, *arguments = argv
        return super unless PARTS.key?(name)
        self.class.const_get(name.capitalize).new(stdin: stdin, stdout: stdout, stderr: stderr, env: env).run(arguments)
      end

      private

      def options(parser)
        parser.separator("\nWhat:")
        PARTS.each { |name, summary| parser.separator("  #{name.ljust(10)}#{summary}") }
        parser.separator("\n  hikyaku log check --help says more about check, and so on.")
      end

      def positional(arguments)
        close = arguments.first && CLI.suggest(arguments.first, PARTS.keys)
        raise UsageError, "unknown command log #{CLI.printable(arguments.first)}; did you mean #{close}?" if close
        super
      end

      def call = raise(UsageError, "say what is to be done: hikyaku log #{PARTS.keys.join("|")} DIR")

      # What the commands about a journal have: its folder, given as DIR, and looking at it while somebody may be writing.
      class Folder < Command
        Journal = ::Hikyaku::Log::Journal
        # How often it is read again when it changed meanwhile and did not look sound.
        ATTEMPTS = 3
        # Where in the folder that --storage names a broker and a hub have theirs.
        PARTS = %w[broker hub].freeze
        WANTED = "give the folder that --storage names, or one with a journal"
        # What DIR is, for the help.
        DIR = "the folder that --storage names, in which broker/ and hub/ are, or one of these"
        # Files of a journal besides its segments.
        FILES = [Journal::Checkpoint::NAME, "lock", "salvage"].freeze
        private_constant :Journal, :ATTEMPTS, :PARTS, :WANTED, :DIR, :FILES

        private

        def operands = %w[DIR]

        def parse(argv)
          super
        rescue UsageError => error
          raise UsageError, error.message.sub("see hikyaku log --help", "see #{name} --help")
        end

        def positional(arguments)
          raise UsageError, "unexpected #{arguments[1].inspect}; see #{name} --help" if arguments.size > 1
          raise UsageError, "give a DIR; see #{name} --help" if arguments.empty? || arguments.first.empty?
          raise Failed, "#{arguments.first}: no such folder; #{WANTED}" unless File.directory?(arguments.first)
          arguments
        end

        # Each journal on its own: that one is damaged, or in use, says nothing of the other.
        def call(path)
          folders(path).map do |folder|
            raise Failed, "#{folder}: there is no journal in it" unless journal?(folder)
            refuse_others(folder)
            look_into(folder)
          rescue Error => error
            stderr.puts("hikyaku: #{CLI.printable(error.message)}")
            1
          end.max
        end

        def folders(path)
          return [path] if journal?(path)
          parts = PARTS.map { |part| File.join(path, part) }.select { |folder| File.directory?(folder) }
          return parts if parts.any? { |folder| journal?(folder) }
          raise Failed, "#{path}: there is no journal in it, and none in #{PARTS.map { |part| "#{part}/" }.join(" or ")} there; #{WANTED}"
        end

        # A lock alone is none: who has opened one has made a segment.
        def journal?(folder)
          Dir.children(folder).any? { |name| Journal::Format.segment_number(name) || name == Journal::Checkpoint::NAME }
        rescue SystemCallError => error
          raise Failed, "#{folder}: #{error.class.new.message.downcase}"
        end

        # What the system says of a folder that is read as a file names neither of them.
        def refuse_others(folder)
          Dir.children(folder).sort.each do |name|
            next unless Journal::Format.segment_number(name) || Journal::Format.temporary?(name) || FILES.include?(name)
            kind = File.ftype(File.realpath(name, folder))
            raise Failed, "#{File.join(folder, name)} is a #{kind}, and the journal has a file there: move it away, and look again" unless kind == "file"
          rescue Errno::ENOENT
            next
          end
        end

        def name = self.class.usage[/\Ahikyaku log \w+/]

        # Reads without a lock. A journal that is written to may be read half; then it is read again.
        def look(path, &block)
          files = Journal::Files.new(path)
          (1..).each do |attempt|
            before = state(path)
            recovery = read(files, &block)
            changed = before != state(path)
            return [recovery, changed] if recovery && (!changed || recovery.damages.empty? || attempt == ATTEMPTS)
            raise Failed, "#{path}: its segments come and go; look again when it is not in use" if attempt == ATTEMPTS
            recovery&.close
          end
        rescue SystemCallError => error
          raise Failed, "#{path}: #{error.message}"
        end

        def read(files)
          yield nil if block_given?
          Journal::Recovery.new(files) { |record| yield record if block_given? }
        rescue Errno::ENOENT
          nil
        end

        # What changes whenever something is written.
        def state(path)
          Dir.children(path).sort.map do |file|
            stat = File.stat(File.join(path, file))
            [file, stat.mtime, stat.ino, stat.size]
          rescue Errno::ENOENT
            [file]
          end
        end

        def count(number, noun) = "#{digits(number)} #{noun}#{"s" unless number == 1}"

        def digits(number) = number.to_s.gsub(/(\d)(?=(\d{3})+\z)/, "\\1,")

        def bytes(number)
          return "#{digits(number / 1_048_576)} MiB" if number >= 1_048_576 && number % 1_048_576 == 0
          (number % 1024 == 0) ? "#{digits(number / 1024)} KiB" : "#{digits(number)} bytes"
        end
      end

      # `hikyaku log check`
      class Check < Folder
        summary "Say what is in a journal, and whether it is sound: whether all that was synced is there. It changes nothing."
        usage "hikyaku log check [OPTION…] DIR"
        examples(
          "hikyaku log check /var/lib/hikyaku",
          "hikyaku log check --json /var/lib/hikyaku/broker"
        )

        private

        def options(parser)
          parser.separator("\n  DIR   #{DIR};\n        a journal in use may be looked at, too\n\nThe code is 0 when all are sound, 1 when one is damaged.\n\nOutput:")
          parser.on("--json", "Print one JSON object in a line for each journal") { @json = true }
        end

        def look_into(path)
          counts = nil
          recovery, changed = look(path) do |record|
            counts = Hash.new { |hash, segment| hash[segment] = Hash.new(0) } if record.nil?
            counts[record.segment][record.type] += 1 if record
          end
          @json ? print_json(path, recovery, changed, counts) : print_text(path, recovery, changed, counts)
          recovery.damages.empty? ? 0 : 1
        ensure
          recovery&.close
        end

        def print_text(path, recovery, changed, counts)
          segments = recovery.segments
          stdout.puts("#{path}: #{count(segments.size, "segment")}, #{bytes(segments.sum(&:size))}")
          segments.each do |segment|
            stdout.puts("  #{line(segment, counts[segment.number])}")
            segment.holes.each { |hole| stdout.puts("    #{hole(hole)}") }
          end
          recovery.leftovers.each { |segment| stdout.puts("  #{segment.name}: dropped, to be removed") }
          stdout.puts("  #{recovery.unbegun.name}: not begun, to be removed") if recovery.unbegun
          stdout.puts("checkpoint: #{checkpoint(recovery.checkpoint)}")
          stdout.puts("newest position #{digits(recovery.position)}, of which #{digits(recovery.synced)} is known to be synced; #{tail(recovery)}")
          recovery.damages.each { |damage| stdout.puts("DAMAGE: #{damage.name}, offset #{damage.offset}: #{damage.reason}") }
          stdout.puts("It was written to meanwhile: the newest records may be missing here.") if changed
          stdout.puts(verdict(path, recovery, changed))
        end

        def line(segment, types)
          return "#{segment.name}: its header does not verify" unless segment.header
          range = (segment.position > segment.header.first) ? "positions #{digits(segment.header.first)} to #{digits(segment.position - 1)}" : "no positions"
          kinds = types.select { |type, _| type >= Journal::Format::TYPES.first }.sort.map { |type, number| "#{Journal::Format.type_name(type)} #{digits(number)}" }
          "#{segment.name}: #{bytes(segment.size)}, #{[range, *kinds].join(", ")}, #{ending(segment)}"
        end

        def hole(hole)
          missing = (hole.missing > 0) ? "positions #{digits(hole.first)} to #{digits(hole.last)} are missing" : "no position is missing"
          "torn from offset #{digits(hole.from)} to #{digits(hole.to)}: #{missing}"
        end

        def ending(segment)
          {Journal::Format::ENDING => "ended", Journal::Format::CLOSE => "closed"}.fetch(segment.ending, "no end") + " at offset #{digits(segment.offset)}"
        end

        def checkpoint(checkpoint)
          return "none" unless checkpoint
          text = "synced up to #{digits(checkpoint.synced)}, first segment #{checkpoint.first}, newest #{checkpoint.newest}"
          checkpoint.dropped.empty? ? text : "#{text}, dropped #{checkpoint.dropped.join(" ")}"
        end

        def tail(recovery)
          return "it was closed in order" if recovery.newest&.ending == Journal::Format::CLOSE
          "it was not closed: it is in use, or what used it was killed"
        end

        def verdict(path, recovery, changed)
          return "It is sound." if recovery.damages.empty?
          return "It looks damaged, but it is being written to: look again when it is not in use." if changed
          "It is damaged: hikyaku log salvage #{path} says what can be kept."
        end

        def print_json(path, recovery, changed, counts)
          require "json"
          stdout.puts(JSON.generate(
            folder: path, sound: recovery.damages.empty?, changed: changed, identity: recovery.identity&.unpack1("H*"), position: recovery.position,
            synced: recovery.synced, closed: recovery.newest&.ending == Journal::Format::CLOSE, segments: recovery.segments.map { |segment| json(segment, counts[segment.number]) },
            dropped: recovery.dropped.sort, leftovers: recovery.leftovers.map(&:name), checkpoint: recovery.checkpoint&.to_h&.except(:identity),
            damages: recovery.damages.map(&:to_h)
          ))
        end

        def json(segment, types)
          {name: segment.name, bytes: segment.size, first: segment.header&.first, last: segment.header && segment.position - 1, offset: segment.offset,
           holes: segment.holes.map { |hole| hole.to_h.slice(:from, :to, :first, :last) }, ending: segment.ending && Journal::Format.type_name(segment.ending), records: types.sort.to_h { |type, number| [Journal::Format.type_name(type), number] }}
        end
      end

      # `hikyaku log dump`
      class Dump < Folder
        summary "Print the records of a journal, one in a line: position, type, flags, segment and offset, length, and the beginning of the body."
        usage "hikyaku log dump [OPTION…] DIR"
        examples(
          "hikyaku log dump --limit 20 /var/lib/hikyaku",
          "hikyaku log dump --type ENQUEUE --from 1000 --to 2000 /var/lib/hikyaku/broker",
          "hikyaku log dump --type MARK --type DROPPED /var/lib/hikyaku"
        )

        # Bytes of a body that are shown.
        SHOWN = 60
        private_constant :SHOWN

        private

        def options(parser)
          @types = []
          @from = 1
          @to = Float::INFINITY
          @limit = Float::INFINITY
          parser.separator("\n  DIR   #{DIR};\n        a journal in use may be looked at, too\n\nWhich:")
          value_option(parser, "--type TYPE", "Only records of this type, by name or number (may be repeated); MARK, END, CLOSE, DROPPED and SKIP, the journal's own, are shown only when they are asked for") { |text| @types << type(text) }
          value_option(parser, "--from POSITION", "Only from this position on") { |text| @from = number("--from", text) }
          value_option(parser, "--to POSITION", "Only up to this position") { |text| @to = number("--to", text) }
          value_option(parser, "--limit COUNT", "Only so many of each journal") { |text| @limit = number("--limit", text) }
        end

        # Where a record stands is said of its journal: that is named when DIR has more than itself.
        def folders(path) = super.tap { |folders| @named = folders != [path] }

        def look_into(path)
          recovery, changed = look(path)
          stdout.puts("#{path}:") if @named
          print_records(recovery)
          stderr.puts("It was written to meanwhile: the newest records may be missing here.") if changed
          damage = recovery.damages.first or return 0
          raise Failed, "#{"#{path}: " if @named}#{damage.name} is damaged at offset #{damage.offset}: #{damage.reason}; what stands behind is not shown"
        ensure
          recovery&.close
        end

        def print_records(recovery)
          shown = 0
          catch(:enough) do
            recovery.segments.reject { |segment| segment.position < @from }.each do |segment|
              segment.each(verify: false, upto: segment.offset) do |record|
                next unless shown?(record)
                throw :enough if (shown += 1) > @limit
                stdout.puts(line(record))
              end
              segment.close
            end
          end
        rescue Errno::ENOENT
          raise Failed, "a segment was dropped while it was read: look again from --from on"
        end

        def shown?(record)
          record.position.between?(@from, @to) && (@types.empty? ? record.type >= Journal::Format::TYPES.first : @types.include?(record.type))
        end

        def line(record)
          "#{record.position} #{Journal::Format.type_name(record.type)} #{record.flags} #{record.segment}:#{record.offset} #{record.body.bytesize} #{text(record.body)}".rstrip
        end

        # In one line, without what a terminal would obey.
        def text(body)
          shown = body.byteslice(0, SHOWN).gsub("\\") { "\\\\" }.force_encoding(Encoding::UTF_8).scrub { |bytes| bytes.unpack("C*").map { |byte| format("\\x%02x", byte) }.join }
          CLI.plain(shown).gsub("\n", "\\n") + ("…" if body.bytesize > SHOWN).to_s
        end

        def type(text)
          found = Journal::Format::NAMES.key(text.upcase) || (text.match?(/\A\d{1,2}\z/) && text.to_i)
          found || raise(UsageError, "--type: expected a number or one of #{Journal::Format::NAMES.values.join(", ")}, got #{text.inspect}")
        end

        def number(option, text)
          raise UsageError, "#{option}: expected a whole number, 1 or more, got #{text.inspect}" unless text.match?(/\A[1-9]\d{0,18}\z/)
          text.to_i
        end
      end

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
