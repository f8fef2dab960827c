# frozen_string_literal: true

require_relative "folder"

module Hikyaku
  module CLI
    class Log < Command
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
    end
  end
end
