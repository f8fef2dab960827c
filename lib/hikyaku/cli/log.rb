# frozen_string_literal: true

require_relative "command"

module Hikyaku
  module CLI
    # `hikyaku log`: what can be done with a journal, each in a file of its own below log/.
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
        require_relative "log/#{name}"
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
    end
  end
end
