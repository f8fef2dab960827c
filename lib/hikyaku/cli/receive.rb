# frozen_string_literal: true

require_relative "broker_client"

module Hikyaku
  module CLI
    # `hikyaku receive`
    class Receive < BrokerClient
      # Messages that are here and not done, at most; and where they are only looked at.
      CREDIT = 100
      LOOKS = 10_000
      # Seconds that a command may run, as a block of the client: that is not loaded before it is needed.
      TIMEOUT = 1800
      # Seconds between TERM and KILL for a command that runs too long, and after which its message is given up whatever holds it.
      GRACE = 5
      GIVE_UP = 30
      private_constant :CREDIT, :LOOKS, :TIMEOUT, :GRACE, :GIVE_UP

      summary "Receive messages from a queue of the broker: waits for one, prints it, and frees it."
      usage "hikyaku receive [OPTION…] [QUEUE]"
      examples(
        "hikyaku receive resize",
        "hikyaku receive --follow --exec 'convert \"$(cat)\" small.png' resize",
        "hikyaku receive --release --count 10 --wait 1 --json orders",
        "hikyaku receive --identity ann --follow"
      )

      private

      def operands = %w[QUEUE]

      def options(parser)
        @count = 1
        @timeout = TIMEOUT
        parser.separator("\n  QUEUE   its name; with --identity the queue of that client unless given\n\nWhich:")
        value_option(parser, "--count N", "End after so many messages; 1 unless given") { |text| @count = whole("--count", text) }
        parser.on("--follow", *wrap("Go on until interrupted")) { @follow = true }
        value_option(parser, "--wait SECONDS", "End when no message has come for so long; code 1 if there was none") { |text| @wait = seconds("--wait", text) }
        what_becomes_of_them(parser)
        broker_options(parser)
      end

      def what_becomes_of_them(parser)
        parser.separator("\nWhat becomes of them:")
        parser.on("--release", *wrap("Only look: all that was printed goes back to the queue at the end")) { @release = true }
        value_option(parser, "--exec COMMAND", "A shell command that gets the payload as its standard input, and HIKYAKU_MESSAGE_ID, HIKYAKU_QUEUE, HIKYAKU_ATTEMPT and HIKYAKU_FAILURES as variables. " \
          "When it ends with 0 the message is acknowledged, else it is rejected and comes again later") { |text| @command = text }
        value_option(parser, "--lease SECONDS", "After which a message is somebody else's, if this process hangs") { |text| @lease = seconds("--lease", text) }
        value_option(parser, "--timeout SECONDS", "After which a command that still runs is ended (TERM, then KILL), and its message rejected; #{@timeout} unless given, 0: never") { |text| @timeout = seconds("--timeout", text) }
        parser.on("--json", *wrap("Print each as one line of JSON with id, payload, properties and how often it was tried")) { @json = true }
      end

      def call(queue = nil)
        name = own_or(queue)
        raise UsageError, "--release only looks, and --exec does something: give one of them" if @release && @command
        seen = 0
        connect do |client|
          receiver = client.receiver(name, credit: credit, lease: @lease, report_start: !@release, timeout: (@timeout + GIVE_UP if @timeout.positive?))
          each_delivery(receiver) do |delivery|
            seen += 1
            handle(delivery)
            break if !@follow && seen == @count
          end
        end
        (seen.zero? && @wait) ? 1 : 0
      end

      def own_or(queue)
        return if queue.nil? && @identity
        name, kind = queue(queue)
        raise UsageError, "to receive what is sent to #{queue}, be it: give --identity #{name}, and no QUEUE" if kind == :client
        name
      end

      # What waits here is kept from others: one at a time for a command that may take long.
      def credit
        return 1 if @command
        most = @release ? LOOKS : CREDIT
        @follow ? most : [@count, most].min
      end

      # A command may take long: its lease is kept.
      def each_delivery(receiver, &block)
        return receiver.work(idle: @wait, on_error: ->(error, _) { failed(error) }, &block) if @command
        while (delivery = receiver.receive(timeout: @wait))
          yield delivery
        end
      ensure
        looked_at.each(&:release)
      end

      # What comes too late is no reason to end.
      def failed(error)
        raise error unless error.is_a?(Hikyaku::Broker::Client::Stale) || error.is_a?(Hikyaku::Broker::Client::BlockTimeout)
        stderr.puts("hikyaku: #{error.message}")
      end

      # Freed when it was printed: if nobody reads the output, the message is not lost.
      def handle(delivery)
        show(delivery) if @json || !@command
        if @command then perform(delivery)
        elsif @release then look_at(delivery)
        else delivery.ack
        end
      end

      # They stay out until the end, so that they are not seen twice.
      def look_at(delivery)
        delivery.kept = true
        looked_at << delivery
      end

      def looked_at = @looked_at ||= []

      def perform(delivery)
        output, status = execute(delivery)
        if status.success?
          delivery.ack
        else
          words = failure(status)
          delivery.reject("#{@command[0, 200]}: #{words}", delay: Hikyaku::Broker::Client::Receiver::DEFAULT_RETRY_DELAY.call(delivery))
          stderr.puts("hikyaku: message #{delivery.id}: the command #{words.sub("killed", "was killed")}; it comes again")
        end
        stdout.write(output)
        stdout.flush
      end

      def failure(status)
        return "ran longer than #{@timeout} seconds and was ended" if @timed_out
        status.signaled? ? "killed by signal #{status.termsig}" : "ended with #{status.exitstatus}"
      end

      def execute(delivery)
        variables = {"HIKYAKU_MESSAGE_ID" => delivery.id, "HIKYAKU_QUEUE" => delivery.queue, "HIKYAKU_ATTEMPT" => delivery.attempt, "HIKYAKU_FAILURES" => delivery.failures}
        pipe = IO.popen([variables.transform_values(&:to_s), "/bin/sh", "-c", @command], "r+b", pgroup: true)
        watchdog = end_after_timeout(pipe.pid)
        output = exchange(pipe, delivery.payload)
        pipe.close
        [output, $?]
      ensure
        watchdog&.kill
        # When this process is interrupted, the command is, too.
        if pipe && output.nil?
          signal("TERM", pipe.pid)
          pipe.close
        end
      end

      def end_after_timeout(pid)
        @timed_out = false
        return unless @timeout.positive?
        Thread.new do
          sleep @timeout
          @timed_out = true
          signal("TERM", pid)
          sleep GRACE
          signal("KILL", pid)
        end
      end

      # To the shell, and what it has started.
      def signal(name, pid)
        Process.kill(name, -pid)
      rescue Errno::ESRCH
        nil
      end

      # A command may write before it has read everything, or not read at all.
      def exchange(pipe, payload)
        writing = Thread.new do
          pipe.write(payload)
        rescue Errno::EPIPE, IOError
          nil # the command reads no more, or was ended
        ensure
          pipe.close_write
        end
        pipe.read
      ensure
        # An interrupt can come between the beginning of the thread and the assignment.
        writing&.kill if $!
        writing&.join
      end

      def show(delivery)
        return json(fields(delivery)) if @json
        stdout.puts(delivery.payload)
        stdout.flush
      end

      def fields(delivery)
        payload = delivery.payload
        content = payload.valid_encoding? ? {payload: payload} : {payload_base64: [payload].pack("m0")}
        properties = delivery.properties.transform_values { |value| value.scrub("?") }
        {id: delivery.id, **content, properties: properties, attempt: delivery.attempt, failures: delivery.failures, crashes: delivery.crashes, priority: delivery.priority}
      end
    end
  end
end
