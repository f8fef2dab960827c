# frozen_string_literal: true

require_relative "folder"

module Hikyaku
  module CLI
    class Log < Command
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
    end
  end
end
