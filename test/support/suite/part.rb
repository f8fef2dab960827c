# frozen_string_literal: true

require "rbconfig"

module Suite
  # One part of what bin/test does: a name, and the commands that run one after the other.
  #
  # `tests` says that its last command is a test process, whose report is then expected.
  Part = Struct.new(:name, :commands, :tests, keyword_init: true)

  # The parts, in the order in which they are started; the long ones come first.
  module Parts
    RUBY = RbConfig.ruby
    UNIT_PROCESSES = 2

    class << self
      # @return [Hash{String => Array<Part>}] parts by name; a name may stand for several processes
      def all
        {
          "browser" => [tests("browser", "test/system/**/*_test.rb")],
          "integration" => [tests("integration", "test/integration/**/*_test.rb", "test/readme_test.rb")],
          # Rails changes Ruby's own classes: not beside other tests.
          "rails" => [tests("rails", "test/rails/**/*_test.rb")],
          "unit" => units,
          "protocol" => [tests("protocol", "test/protocol/**/*_test.rb")],
          "contract" => [process("contract", contracts)],
          "lint" => [Part.new(name: "lint", commands: [%w[standardrb --no-fix]])],
          "types" => [types],
          "docs" => [docs],
          "architecture" => [tests("architecture", "test/architecture_test.rb", "test/style_test.rb")]
        }
      end

      # @return [Part] a test process over these files
      def process(name, files, arguments = [])
        load_all = "ARGV.shift(ARGV.index(%(--))).each { |file| require File.expand_path(file) }; ARGV.shift"
        command = [RUBY, "-Itest", "-Ilib", "-e", load_all, "--", *files.sort, "--", *arguments]
        Part.new(name: name, commands: [command], tests: true)
      end

      private

      def tests(name, *patterns) = process(name, Dir[*patterns])

      def types
        tests("types", "test/types_test.rb").tap { |part| part.commands.unshift(%w[rbs -I sig -r logger -r openssl -r stringio -r uri validate]) }
      end

      def docs
        yard = %w[yard doc --no-output --no-cache --no-save --no-progress --quiet --fail-on-warning]
        tests("docs", "test/documentation_test.rb").tap { |part| part.commands.unshift(yard) }
      end

      # What holds for every engine: the files that run a contract of test/contracts over one.
      def contracts = Dir["test/**/*_test.rb"].select { |file| File.read(file).match?(/^require "contracts\//) }

      # Every test file that has no part of its own, dealt out by size to processes of about the same length.
      def units
        own = contracts + Dir["test/{system,integration,protocol,rails}/**/*_test.rb",
          "test/{architecture,style,readme,types,documentation}_test.rb"]
        shares = Array.new(UNIT_PROCESSES) { [] }
        (Dir["test/**/*_test.rb"] - own).sort_by { |file| -File.size(file) }.each do |file|
          shares.min_by { |share| share.sum { |each| File.size(each) } } << file
        end
        shares.each_with_index.map { |files, index| process("unit #{index + 1}", files) }
      end
    end
  end
end
