# frozen_string_literal: true

require "optparse"
require_relative "../cli"

module Hikyaku
  module CLI
    # What all commands have: options with clear errors, `--help`, and the streams that they were given.
    class Command
      # Columns of the help.
      WIDTH = 100
      private_constant :WIDTH

      class << self
        def summary(text = nil) = text ? @summary = text : @summary

        def usage(text = nil) = text ? @usage = text : @usage

        def examples(*lines) = lines.empty? ? @examples : @examples = lines
      end

      def initialize(stdin:, stdout:, stderr:, env:)
        @stdin = stdin
        @stdout = stdout
        @stderr = stderr
        @env = env
      end

      def run(argv)
        catch(:answered) { return call(*positional(parse(argv))) }
        0
      end

      private

      attr_reader :stdin, :stdout, :stderr, :env

      # Names of what is given without a dash; `call` takes them.
      def operands = []

      # What prints the help.
      def manual = "#{self.class.usage[/\Ahikyaku \w+/]} --help"

      # Adds the command's own options.
      def options(parser)
      end

      def parse(argv)
        parser = build
        refuse_abbreviations(argv, parser)
        parser.permute(argv)
      rescue OptionParser::InvalidOption, OptionParser::AmbiguousOption => error
        raise UsageError, unknown(error.args.first.to_s[/\A(?:-[^-]|[^=]*)/], switches(parser))
      rescue OptionParser::MissingArgument => error
        raise UsageError, "#{error.args.first} needs a value"
      rescue OptionParser::NeedlessArgument => error
        raise UsageError, "#{error.args.first[/\A[^=]*/]} takes no value"
      rescue OptionParser::ParseError => error
        raise UsageError, "#{error.args.first[/\A[^=]*/]}: #{error.reason}"
      end

      def build
        OptionParser.new("Usage: #{self.class.usage}", 36, "  ") do |parser|
          parser.separator("\n#{self.class.summary}")
          options(parser)
          parser.separator("\nHelp:")
          parser.on("-h", "--help", "Print this") { answer(help(parser)) }
          parser.on("--version", "Print the version") { answer("hikyaku #{VERSION}") }
        end
      end

      def help(parser) = "#{parser.help}\nExamples:\n#{self.class.examples.map { |line| "  #{line}" }.join("\n")}"

      # The rest of the command line is then of no interest, right or wrong.
      def answer(text)
        stdout.puts(text)
        throw :answered
      end

      # An abbreviation that is clear today is not when another option comes: `-d` would be --dev. (Ruby 3.1's `require_exact` refuses
      # `--name=value` as well.)
      def refuse_abbreviations(argv, parser)
        known = switches(parser)
        argv.take_while { |argument| argument != "--" }.each do |argument|
          next unless argument.match?(/\A-(?:-|[a-z])/i)
          option = argument[/\A(?:-[^-]|[^=]*)/].tr("_", "-")
          raise UsageError, unknown(option, known) unless known.include?(option)
        end
      end

      # Adds an option whose value may not be another option that somebody forgot a value before.
      def value_option(parser, *names, description, &block)
        parser.on(*names, *wrap(description)) do |value|
          raise UsageError, "--#{names.find { |name| name.start_with?("--") }[/\A--([a-z-]+)/, 1]} needs a value" if switches(parser).include?(value)
          block.call(value)
        end
      end

      # What descriptions mention may be another command's.
      def switches(parser)
        names = parser.top.list.grep(OptionParser::Switch).flat_map { |switch| switch.short + switch.long }
        names.flat_map { |name| [name.sub("[no-]", ""), name.sub("[no-]", "no-")] }.uniq
      end

      def wrap(text, width = WIDTH - 39)
        text.gsub(/(.{1,#{width}})(?: +|\z)/, "\\1\n").lines(chomp: true)
      end

      def unknown(option, known)
        close = CLI.suggest(option, known)
        "unknown option #{option}#{close ? "; did you mean #{close}?" : "; see #{manual}"}"
      end

      def positional(arguments)
        if arguments.size > operands.size
          raise UsageError, "unexpected #{arguments[operands.size].inspect}; see #{manual}"
        end
        arguments
      end
    end

    # `hikyaku version`
    class Version < Command
      summary "Print the version of Hikyaku and of Ruby."
      usage "hikyaku version"
      examples "hikyaku version"

      private

      def call
        stdout.puts("hikyaku #{VERSION} (#{RUBY_ENGINE} #{RUBY_ENGINE_VERSION}, #{RUBY_PLATFORM})")
      end
    end
  end
end
