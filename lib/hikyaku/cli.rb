# frozen_string_literal: true

require_relative "error"
require_relative "version"

module Hikyaku
  # The command line: `hikyaku COMMAND`. The file of a command below cli/ is loaded when it is called.
  #
  # Exit codes: 0 done, 1 it did not work, 2 it was asked for in a wrong way, 130 interrupted, 141 nobody reads the output.
  module CLI
    # The command was given in a way that cannot be understood; the message says what to do.
    class UsageError < ArgumentError
      include Error
    end

    # The command could not do what was asked; the message says why.
    class Failed < StandardError
      include Error
    end

    COMMANDS = {
      "serve" => "Run a hub",
      "token" => "Make an access token, or explain one",
      "publish" => "Publish an update",
      "subscribe" => "Receive updates",
      "disconnect" => "Close the streams of a subject",
      "doctor" => "Look at a running hub from the outside, and say what to change",
      "broker" => "Run a broker",
      "log" => "Look at a journal on the disk, and save it",
      "send" => "Send messages to a queue of the broker",
      "receive" => "Receive messages from a queue of the broker",
      "queues" => "Show the broker's queues",
      "dead" => "List, replay or drop dead letters",
      "identities" => "List the identities that the broker remembers, or drop one",
      "explain" => "Say where a message is, and why it waits",
      "fetch" => "Get URLs, many at once, pipelined where servers allow it",
      "inspect" => "Show MessagePack or JSON as readable text, and how large it is in other forms",
      "proxy" => "Run a proxy that makes slow, long links feel fast to a browser",
      "version" => "Print the version"
    }.freeze
    # Files of the commands that share one; the others have a file of their name.
    FILES = {
      "publish" => "client", "subscribe" => "client", "disconnect" => "client",
      "queues" => "broker_client", "dead" => "broker_client", "identities" => "broker_client", "explain" => "broker_client", "version" => "command"
    }.freeze
    # Errors of what was given, not of what was tried.
    MISTAKES = [UsageError, ConfigError, InvalidTopic, InvalidMatcher, InvalidUpdate, LimitExceeded].freeze
    private_constant :FILES, :MISTAKES

    module_function

    # @param argv [Array<String>]
    # @param stdin [IO]
    # @param stdout [IO] what was asked for
    # @param stderr [IO] progress, warnings and errors
    # @param env [Hash{String => String}]
    # @return [Integer] the exit code
    def run(argv, stdin: $stdin, stdout: $stdout, stderr: $stderr, env: ENV)
      name, *arguments = argv.map { |argument| utf8(argument) }
      case name
      when "--help", "-h" then stdout.puts(help)
      when "help" then return run([*arguments.first(1), "--help"], stdin: stdin, stdout: stdout, stderr: stderr, env: env)
      when "--version", "-v" then stdout.puts("hikyaku #{VERSION}")
      else code = command(name).new(stdin: stdin, stdout: stdout, stderr: stderr, env: env).run(arguments)
      end
      stdout.flush
      code || 0
    rescue Errno::EPIPE
      141
    rescue Interrupt
      130
    rescue *MISTAKES => error
      complain(stderr, error.message, 2)
    rescue Error => error
      complain(stderr, error.message, 1)
    rescue => error
      # Not foreseen, so its message is in no form that we know; a backtrace is for those who ask for it.
      raise if env["HIKYAKU_DEBUG"].to_s == "1"
      complain(stderr, "#{error.class}: #{gist(error)} (HIKYAKU_DEBUG=1 shows where)", 1)
    end

    # The encoding of arguments depends on the locale; their meaning does not.
    def utf8(text)
      text = text.dup.force_encoding(Encoding::UTF_8)
      return text if text.valid_encoding?
      raise UsageError, "#{text.scrub("?")[0, 60].inspect} is not valid UTF-8"
    end

    def command(name)
      raise UsageError, "give a command: #{COMMANDS.keys.join(", ")}; hikyaku --help says more" unless name
      unless COMMANDS.key?(name)
        close = suggest(name, COMMANDS.keys)
        raise UsageError, "unknown command #{printable(name)}#{close ? "; did you mean #{close}?" : "; hikyaku --help lists them"}"
      end
      require_relative "cli/#{FILES.fetch(name, name)}"
      const_get(name.capitalize)
    end

    # @param word [String]
    # @param known [Array<String>]
    # @return [String, nil] what was probably meant
    def suggest(word, known)
      require_relative "config/suggestion"
      Config::Suggestion.for(word, known)
    end

    # @param text [String]
    # @return [String] in one line, without what a terminal would obey
    def printable(text) = text.dup.force_encoding(Encoding::UTF_8).scrub("?").gsub(/[\p{Cntrl}\p{Cf}]+/, " ").strip

    # @param text [String] UTF-8, of somebody else
    # @return [String] without what a terminal would obey, but with its lines
    def plain(text) = text.gsub(/[[\p{Cntrl}\p{Cf}]&&[^\n]]/) { |character| format("\\u%04x", character.ord) }

    def help
      width = COMMANDS.keys.map(&:size).max
      <<~TEXT
        Hikyaku, a Mercure hub: publish over HTTP, receive over Server-Sent Events; and a broker: queues that keep messages.

        Usage: hikyaku COMMAND [OPTION…]

        #{COMMANDS.map { |name, summary| "  #{name.ljust(width)}  #{summary}" }.join("\n")}

        hikyaku COMMAND --help says more about a command.

        Examples:
          hikyaku serve --dev
          hikyaku publish --dev https://example.com/books/1 '{"title": "Dune"}'
          hikyaku subscribe --dev --match https://example.com/books/1
          hikyaku broker --storage tmp/hikyaku
          hikyaku send resize photo.jpg
      TEXT
    end

    # Ruby shows the object that an error is about, which may be a secret, or settings and the environment with secrets in them.
    def gist(error)
      case error
      when NameError then "there is no #{error.name}"
      when FrozenError then "a frozen #{error.receiver.class} was to be changed"
      else error.message
      end
    end

    def complain(stderr, message, code)
      stderr.puts("hikyaku: #{printable(message)}")
      code
    rescue Errno::EPIPE
      code
    end
    private_class_method :complain, :gist, :help, :command, :utf8
  end
end
