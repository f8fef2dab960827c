# frozen_string_literal: true

require_relative "../command"
require_relative "../../log/journal"

module Hikyaku
  module CLI
    class Log < Command
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
    end
  end
end
