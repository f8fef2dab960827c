# frozen_string_literal: true

require_relative "command"

module Hikyaku
  module CLI
    # What commands share that talk to a broker: where it is, who one is, how queues are written.
    class BrokerClient < Command
      # Seconds that a command waits for the end of its connection.
      PATIENCE = 5
      # What the protocol can say: 32 bits of milliseconds.
      MOST_SECONDS = 4_294_966
      private_constant :PATIENCE, :MOST_SECONDS

      private

      def broker_options(parser)
        parser.separator("\nBroker:")
        value_option(parser, "--connect ADDRESS", "unix:PATH or tcp://HOST:PORT (HIKYAKU_BROKER_ADDRESS; else the socket where a broker listens unless told otherwise)") { |text| @address = text }
        value_option(parser, "--secret-file PATH", "File with the broker's secret (HIKYAKU_BROKER_SECRET_FILE)") { |path| @secret_file = path }
        value_option(parser, "--token TOKEN", "Access token (HIKYAKU_BROKER_TOKEN)") { |token| @token = token }
        value_option(parser, "--identity NAME", "Under which others address this client; nobody else may have it at the same time") { |name| @identity = name }
      end

      def connect(identity: nil, **options)
        require_relative "../broker/client"
        address = @address ? Hikyaku::Broker::Address.parse(@address) : Hikyaku::Broker::Address.default(env)
        client = Hikyaku::Broker::Client.open(address, identity: @identity || identity, agent: "hikyaku #{self.class.name[/\w+\z/].downcase} (process #{Process.pid})",
          open_timeout: 0, **credentials, **options)
        begin
          yield client
        ensure
          client.close(timeout: PATIENCE)
        end
      rescue ArgumentError => error
        raise if error.is_a?(Error)
        raise UsageError, error.message
      end

      def credentials
        return {token: @token} if @token
        path = @secret_file || given(env["HIKYAKU_BROKER_SECRET_FILE"])
        require_relative "../config/secret_file"
        return {secret: Config::SecretFile.read(path, where: "#{path}: the secret")} if path
        token = given(env["HIKYAKU_BROKER_TOKEN"])
        token ? {token: token} : {}
      rescue ConfigError => error
        raise UsageError, error.message
      end

      def given(text) = (text unless text.to_s.strip.empty?)

      # `@ann` is the queue of the client ann, as in the patterns of tokens.
      def queue(text)
        raise UsageError, "give a QUEUE; see #{self.class.usage[/\Ahikyaku \w+/]} --help" if text.to_s.empty?
        text.start_with?("@") ? [text.delete_prefix("@"), :client] : [text, :queue]
      end

      def whole(option, text, least: 1)
        number = text.to_i if text.match?(/\A\d{1,18}\z/)
        return number if number && number >= least
        raise UsageError, "#{option}: expected a whole number from #{least}, got #{text.inspect}"
      end

      def seconds(option, text)
        number = text.to_f if text.match?(/\A\d{1,7}(?:\.\d{1,6})?\z/)
        return number if number && number <= MOST_SECONDS
        raise UsageError, "#{option}: expected a number of seconds from 0 to #{MOST_SECONDS}, got #{text.inspect}"
      end

      def json(document)
        require "json"
        stdout.puts(JSON.generate(document))
        stdout.flush
      end

      def duration(milliseconds)
        seconds = milliseconds.to_i / 1000.0
        if seconds < 1 then "#{milliseconds.to_i} ms"
        elsif seconds < 120 then "#{seconds.round(1)} s"
        elsif seconds < 7200 then "#{(seconds / 60).round} min"
        elsif seconds < 172_800 then "#{(seconds / 3600).round} h"
        else "#{(seconds / 86_400).round} d"
        end
      end

      def table(rows)
        widths = rows.transpose.map { |column| column.map { |cell| cell.to_s.size }.max }
        rows.each do |row|
          line = row.each_with_index.map { |cell, index| index.zero? ? cell.to_s.ljust(widths[index]) : cell.to_s.rjust(widths[index]) }
          stdout.puts(line.join("  ").rstrip)
        end
        stdout.flush
      end

      def plain(text) = CLI.printable(text.to_s)
    end

    # `hikyaku queues`
    class Queues < BrokerClient
      # Seconds between two looks.
      INTERVAL = 2.0
      COLUMNS = {"READY" => "ready", "DELAYED" => "delayed", "OUT" => "out", "DEAD" => "dead", "RECEIVERS" => "receivers", "SENT" => "sent", "FREED" => "freed"}.freeze
      private_constant :INTERVAL, :COLUMNS

      summary "Show the broker's queues: what waits, what is out, what is dead, and for how long the oldest has waited."
      usage "hikyaku queues [OPTION…] [PREFIX]"
      examples(
        "hikyaku queues",
        "hikyaku queues --watch orders",
        "hikyaku queues --json | jq .name",
        "hikyaku queues --purge resize"
      )

      private

      def operands = %w[PREFIX]

      def options(parser)
        parser.separator("\n  PREFIX   with which their names begin; @ for the queues of clients\n\nOutput:")
        parser.on("--json", *wrap("Print each as one line of JSON with all its figures")) { @json = true }
        parser.on("--watch", *wrap("Show them again every 2 seconds, until interrupted")) { @watch = true }
        value_option(parser, "--limit N", "So many at most; 1000 unless given") { |text| @limit = whole("--limit", text) }
        parser.separator("\nWhat else:")
        value_option(parser, "--purge QUEUE", "Drop all messages that wait in this queue") { |name| @purge = name }
        broker_options(parser)
      end

      def call(prefix = "")
        raise UsageError, "--purge empties one queue, and shows none: give no PREFIX" if @purge && !prefix.empty?
        connect(identity: "") do |client|
          next purge(client) if @purge
          loop do
            show(find(client, prefix))
            break unless @watch
            sleep INTERVAL
          end
        end
        0
      end

      def find(client, prefix)
        kind = prefix.start_with?("@") ? :client : :queue
        client.queues(prefix.delete_prefix("@"), kind: kind, limit: @limit || 1000).map { |queue| (kind == :client) ? queue.merge("name" => "@#{queue["name"]}") : queue }
      end

      def purge(client)
        name, kind = queue(@purge)
        count = client.purge(name, kind: kind)
        stdout.puts("#{count} #{(count == 1) ? "message" : "messages"} dropped")
      end

      def show(queues)
        return queues.each { |queue| json(queue) } if @json
        stdout.print("\e[H\e[2J") if @watch && stdout.tty?
        rows = queues.map { |queue| [plain(queue["name"]), *queue.values_at(*COLUMNS.values), queue["ready"].to_i.zero? ? "" : duration(queue["oldest_ms"])] }
        table([["QUEUE", *COLUMNS.keys, "OLDEST"], *rows])
      end
    end

    # `hikyaku dead`
    class Dead < BrokerClient
      REASONS = {1 => "failed too often", 2 => "its receivers vanished", 3 => "its receiver said so"}.freeze
      # Characters of a payload that are shown.
      SHOWN = 60
      private_constant :REASONS, :SHOWN

      summary "List the dead letters of a queue, let them wait again, or drop them."
      usage "hikyaku dead [OPTION…] QUEUE"
      examples(
        "hikyaku dead orders",
        "hikyaku dead --replay 4711 orders",
        "hikyaku dead --replay all orders",
        "hikyaku dead --drop all orders"
      )

      private

      def operands = %w[QUEUE]

      def options(parser)
        parser.separator("\n  QUEUE   its name; @NAME for the queue of a client\n\nWhat:")
        value_option(parser, "--replay ID", "Lets it wait again as if it were new; all for all of the queue") { |text| action(:replay, text) }
        value_option(parser, "--drop ID", "Drops it; all for all of the queue") { |text| action(:drop, text) }
        value_option(parser, "--limit N", "List so many at most; 100 unless given") { |text| @limit = whole("--limit", text) }
        parser.on("--json", *wrap("Print each as one line of JSON, with the first 256 bytes of its payload in base64")) { @json = true }
        broker_options(parser)
      end

      def action(name, text)
        raise UsageError, "give --replay or --drop once" if @action
        @action = name
        @message = whole("--#{name}", text) unless text == "all"
      end

      def call(queue = nil)
        name, kind = queue(queue)
        connect(identity: "") do |client|
          @action ? act(client, name, kind) : list(client.dead(name, kind: kind, limit: @limit || 100))
        end
        0
      end

      def act(client, name, kind)
        count = client.public_send(@action, name, @message, kind: kind)
        stdout.puts("#{count} #{(count == 1) ? "message" : "messages"} #{{replay: "replayed", drop: "dropped"}.fetch(@action)}")
      end

      def list(letters)
        return letters.each { |letter| json(letter) } if @json
        letters.each do |letter|
          words = letter["words"].to_s.empty? ? "" : ": #{plain(letter["words"])}"
          stdout.puts("#{letter["id"]}  #{REASONS.fetch(letter["reason"], "reason #{letter["reason"]}")}#{words}")
          stdout.puts("  #{duration(letter["age_ms"])} old, failures #{letter["failures"]}, crashes #{letter["crashes"]}, #{letter["bytes"]} bytes: #{beginning(letter["payload"])}")
        end
      end

      def beginning(payload)
        text = plain(payload.to_s.unpack1("m"))
        (text.size > SHOWN) ? "#{text[0, SHOWN]}…" : text
      end
    end

    # `hikyaku identities`
    class Identities < BrokerClient
      summary "List the identities whose numbered messages the broker remembers, those that it would forget first at the top, or drop one."
      usage "hikyaku identities [OPTION…] [PREFIX]"
      examples(
        "hikyaku identities",
        "hikyaku identities --json billing | jq .idle_ms",
        "hikyaku identities --drop billing-1"
      )

      private

      def operands = %w[PREFIX]

      def options(parser)
        parser.separator("\n  PREFIX   with which they begin\n\nWhat:")
        value_option(parser, "--drop ID", "Forget this one, of which no client is connected: a message that it sends again may be taken twice") { |text| @drop = text }
        value_option(parser, "--limit N", "List so many at most; 1000 unless given") { |text| @limit = whole("--limit", text) }
        parser.on("--json", *wrap("Print each as one line of JSON with all its figures")) { @json = true }
        broker_options(parser)
      end

      def call(prefix = "")
        raise UsageError, "--drop forgets one identity, and lists none: give no PREFIX" if @drop && !prefix.empty?
        raise UsageError, "--drop: an identity has 1 to 255 bytes" unless @drop.nil? || @drop.bytesize.between?(1, 255)
        connect(identity: "") { |client| @drop ? drop(client) : list(client.identities(prefix, limit: @limit || 1000)) }
        0
      end

      def drop(client)
        raise Hikyaku::Broker::Client::Failure, "the broker remembers no identity #{@drop}" unless client.drop_identity(@drop)
        stdout.puts("#{plain(@drop)} dropped")
      end

      def list(identities)
        return identities.each { |identity| json(identity) } if @json
        table([%w[IDENTITY CONNECTED IDLE SETTLED], *identities.map { |identity| row(identity) }])
      end

      def row(identity)
        connected = identity["connected"]
        [plain(identity["identity"]), connected ? "yes" : "no", connected ? "" : duration(identity["idle_ms"]), identity["low"]]
      end
    end

    # `hikyaku explain`
    class Explain < BrokerClient
      LEVELS = %w[memory written synced].freeze
      private_constant :LEVELS

      summary "Say where a message of the broker is and why it waits, or what stands before the oldest of a queue."
      usage "hikyaku explain [OPTION…] ID|QUEUE"
      examples(
        "hikyaku explain 4711",
        "hikyaku explain orders",
        "hikyaku explain --segments"
      )

      private

      def operands = %w[ID|QUEUE]

      def options(parser)
        parser.separator("\n  ID      of a message, as send prints it\n  QUEUE   its name; @NAME for the queue of a client\n\nWhat:")
        parser.on("--queue", *wrap("What is given is a queue, even if it is a number")) { @queue = true }
        parser.on("--segments", *wrap("Which message keeps each oldest part of the journal on the disk")) { @segments = true }
        parser.on("--json", *wrap("Print what the broker says as JSON")) { @json = true }
        broker_options(parser)
      end

      def call(what = nil)
        raise UsageError, "give an ID or a QUEUE; see hikyaku explain --help" if what.to_s.empty? && !@segments
        raise UsageError, "--segments explains the journal: give no ID and no QUEUE" if what && @segments
        connect(identity: "") do |client|
          @segments ? segments(client.segments) : show(explanation(client, what))
        end
        0
      end

      def explanation(client, what)
        return client.explain(what.to_i) if what.match?(/\A\d{1,19}\z/) && !@queue
        name, kind = queue(what)
        client.explain_queue(name, kind: kind)
      end

      def show(report)
        return json(report) if @json
        message = report["message"]
        stdout.puts(message ? "Message #{message["id"]} in #{plain(message["queue"])}: #{plain(message["state"])}, #{plain(report["because"])}." : "#{plain(report["because"]).capitalize}.")
        return unless message
        lines(message).each { |name, value| stdout.puts("  #{name}: #{value}") }
      end

      def lines(message)
        holder = message["holder"]
        {
          "age" => duration(message["age_ms"]),
          "due" => ("in #{duration(message["due_in_ms"])}" if message["due_in_ms"]),
          "expires" => ("in #{duration(message["expires_in_ms"])}" if message["expires_in_ms"]),
          "held by" => ("#{plain(holder["identity"])} (#{plain(holder["agent"])}), session #{holder["session"]}, for #{duration(holder["lease_in_ms"])} more" if holder),
          "tried" => "failures #{message["failures"]}, crashes #{message["crashes"]}, returns #{message["returns"]}",
          "priority" => message["priority"],
          "level" => LEVELS[message["level"].to_i],
          "bytes" => message["bytes"],
          "segment" => message["segment"]
        }.compact
      end

      def segments(list)
        return list.each { |segment| json(segment) } if @json
        rows = list.map { |segment| [segment["number"], segment["bytes"], segment["live"], segment.dig("oldest", "id"), plain(segment.dig("oldest", "queue"))] }
        table([["SEGMENT", "BYTES", "LIVE", "OLDEST", "IN"], *rows])
      end
    end
  end
end
