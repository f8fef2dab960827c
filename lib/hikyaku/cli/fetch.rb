# frozen_string_literal: true

require_relative "command"

module Hikyaku
  module CLI
    # `hikyaku fetch`
    class Fetch < Command
      summary "Get URLs, many at once: pipelined where the servers allow it."
      usage "hikyaku fetch [OPTION…] URL…"
      examples(
        "hikyaku fetch https://example.com/",
        "hikyaku fetch --times --explain http://example.com/a.png http://example.com/b.png",
        "hikyaku fetch --into pictures < urls.txt",
        "hikyaku fetch --head --header 'Accept-Language: ja' https://example.com/",
        "hikyaku fetch --json '{\"title\": \"Dune\"}' https://example.com/books",
        "hikyaku fetch --unix-socket /run/app.sock http://localhost/healthz"
      )

      SECONDS = /\A\d{1,6}(?:\.\d{1,6})?\z/
      MOST_URLS = 100_000
      MOST_MEBIBYTES = 64 # of a body that is not printed as it comes
      private_constant :SECONDS, :MOST_URLS, :MOST_MEBIBYTES

      private

      def options(parser)
        @headers = []
        @settings = {}
        parser.separator("\n  URL   one or more; without any they are read from the standard input, one a line\n")
        parser.separator("  The body of one URL is printed as it comes, however long. Of several, and with --into or --times, each is kept\n  until it is whole: " \
          "one of more than #{MOST_MEBIBYTES} MiB is refused.\n\nWhat:")
        parser.on("--head", *wrap("Ask for the heads alone, and print them")) { @head = true }
        value_option(parser, "--json TEXT", "POST this, as JSON; @FILE for what is in a file, @- for the standard input") { |text| @json = text }
        value_option(parser, "--header FIELD", "As 'Name: value', to send with each; may be repeated") { |text| @headers << field(text) }
        value_option(parser, "--timeout SECONDS", "For each, redirects and all") { |text| @settings[:timeouts] = {total: seconds("--timeout", text)} }
        value_option(parser, "--retries N", "Ask so often again, when a server asks for patience (408, 429, 503)") { |text| @settings[:retries] = count("--retries", text) }
        value_option(parser, "--redirects N", "Follow so many (10)") { |text| @settings[:max_redirects] = count("--redirects", text) }
        value_option(parser, "--ca-file FILE", "Certificates to trust in place of the system's") { |text| @settings[:ca_file] = readable("--ca-file", text) }
        value_option(parser, "--cert FILE", "Who asks, for servers that want to know: a certificate as PEM") { |text| @settings[:client_cert] = readable("--cert", text) }
        value_option(parser, "--key FILE", "Its key, unless it is in the same file") { |text| @settings[:client_key] = readable("--key", text) }
        value_option(parser, "--unix-socket PATH", "By this socket, whatever host the URL names") { |text| @settings[:unix_socket] = text }
        value_option(parser, "--proxy HOST:PORT", "By this proxy; none for none (http_proxy, https_proxy, all_proxy, no_proxy)") { |text| @settings[:proxy] = proxy(text) }
        output_options(parser)
      end

      def output_options(parser)
        parser.separator("\nOutput:")
        parser.on("--include", *wrap("Print heads before bodies")) { @include = true }
        value_option(parser, "--into DIR", "Write each body to a file of its own there (a directory), named as the URL's last part") { |text| @into = text }
        parser.on("--times", *wrap("Say of each what came, how much and how fast, in place of printing it")) { @times = true }
        parser.on("--explain", *wrap("Say of each server at the end whether it was pipelined, and why, on the standard error")) { @explain = true }
        parser.on("--forget", *wrap("Neither use nor keep what is known of servers ($XDG_CACHE_HOME/hikyaku/origins.json, for a day)")) { @settings[:memory] = nil }
      end

      # Any number.
      def positional(arguments) = [arguments]

      def call(urls)
        require_relative "../http/client" # whose errors are rescued here
        @request = @json ? posted(urls) : {}
        urls = stdin.each_line(chomp: true).first(MOST_URLS).map(&:strip).reject(&:empty?) if urls.empty?
        raise UsageError, "give a URL; see hikyaku fetch --help" if urls.empty?
        prepare(@into) if @into
        client = HTTP::Client.new(headers: @headers, max_body_bytes: MOST_MEBIBYTES << 20, **@settings)
        @failed = 0
        ask(client, urls)
        explain(client, urls) if @explain
        (@failed > 0) ? 1 : 0
      rescue HTTP::InvalidURL => error
        raise UsageError, error.message
      rescue ArgumentError => error
        raise if error.is_a?(Error)
        raise UsageError, error.message
      ensure
        client&.close
      end

      # One body is printed as it comes.
      def ask(client, urls)
        return stream(client, urls.first) if urls.size == 1 && !@head && !@into && !@times
        return client.together { urls.map { |url| client.fetch(url, **@request) } }.each { |fetch| tell(fetch.outcome) } if @json
        return client.public_send(@head ? :head : :get, *urls) { |outcome| tell(outcome) } if @times || @into
        outcomes = client.public_send(@head ? :head : :get, urls)
        outcomes.each { |outcome| tell(outcome) }
      end

      # As curl has it. The text is sent as it is.
      def posted(urls)
        raise UsageError, "--json sends something, and --head asks for heads alone: give one of them" if @head
        raise UsageError, "--json @- reads the standard input, and so do URLs that are not given: give a URL" if @json == "@-" && urls.empty?
        said = @headers.map { |name, _| name.downcase }
        labels = {"content-type" => "application/json", "accept" => "application/json"}.except(*said)
        {method: "POST", body: text_of(@json), headers: labels}
      end

      def text_of(json)
        return json unless json.start_with?("@")
        (json == "@-") ? stdin.read : File.binread(readable("--json", json.delete_prefix("@")))
      end

      def stream(client, url)
        client.open(url, **@request) do |answer|
          heads(answer) if @include
          answer.each { |piece| stdout.write(piece) }
          refused(url, answer.status) unless answer.ok?
        end
      rescue HTTP::RequestFailed => error
        failed(error)
      end

      def tell(outcome)
        return failed(outcome.error) if outcome.error
        refused(outcome.url, outcome.status) unless outcome.ok?
        return stdout.puts(time(outcome)) if @times
        heads(outcome) if @include || @head
        @into ? write(outcome) : stdout.write(outcome.body)
      end

      def time(outcome)
        way = outcome.cached? ? "cache" : format("%.0f ms", outcome.seconds * 1e3)
        [outcome.status, "#{outcome.body.bytesize} B", way, CLI.printable(outcome.url)].join("\t")
      end

      def heads(answer)
        stdout.puts("#{answer.status} #{answer.url}", *answer.headers.map { |name, value| "#{name}: #{CLI.printable(value)}" }, "")
      end

      # Before anything is asked for.
      def prepare(folder)
        require "fileutils"
        raise Failed, "cannot write below #{folder}: it is a file; --into takes a directory" if File.exist?(folder) && !File.directory?(folder)
        FileUtils.mkdir_p(folder)
      rescue SystemCallError => error
        raise Failed, "cannot write below #{folder}: no directory can be made there (#{reason(error)})"
      end

      # Without the name of the function in C.
      def reason(error) = error.class.new.message

      # The last part of a path is what somebody else says: nothing of it leads elsewhere, and no file is written twice.
      def write(outcome)
        name = HTTP::Address.parse(outcome.url).target[/\A[^?]*/].split("/").last.to_s.gsub(/[^\w.-]/, "_").sub(/\A\.+/, "")
        name = "index" if name.empty?
        name = name[-100..] if name.size > 100
        number = 0
        begin
          numbered = number.zero? ? name : name.sub(/(?=\.[^.]*\z|\z)/, "-#{number}")
          File.open(File.join(@into, numbered), File::WRONLY | File::CREAT | File::EXCL | File::BINARY) { |file| file.write(outcome.body) }
        rescue Errno::EEXIST
          number += 1
          retry
        end
      rescue SystemCallError => error
        raise Failed, "cannot write below #{@into}: #{reason(error)}"
      end

      def refused(url, status)
        @failed += 1
        stderr.puts("hikyaku: #{CLI.printable(url)}: #{status}")
      end

      def failed(error)
        @failed += 1
        stderr.puts("hikyaku: #{CLI.printable(error.message)}")
      end

      def explain(client, urls)
        urls.map { |url| HTTP::Address.parse(url).origin.to_s }.uniq.each { |origin| stderr.puts(CLI.printable(client.explain(origin))) }
      end

      def field(text)
        name, value = text.split(":", 2)
        raise UsageError, "--header: expected 'Name: value', got #{text[0, 40].inspect}" unless value
        [name.strip, value.strip]
      end

      # As the variables of the environment have it.
      def proxy(text)
        return if text == "none"
        text.include?("://") ? text : "http://#{text}"
      end

      def readable(option, text)
        raise UsageError, "#{option}: the file #{text.inspect} cannot be read" unless File.file?(text) && File.readable?(text)
        text
      end

      def seconds(option, text)
        raise UsageError, "#{option}: expected seconds, got #{text.inspect}" unless text.match?(SECONDS) && text.to_f > 0
        text.to_f
      end

      def count(option, text)
        raise UsageError, "#{option}: expected a number, got #{text.inspect}" unless text.match?(/\A\d{1,2}\z/)
        text.to_i
      end
    end
  end
end
