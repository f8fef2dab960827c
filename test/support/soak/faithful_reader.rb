# frozen_string_literal: true

class Soak
  # Reads all there is on a topic, leaves now and then in every way, and comes back with the id of the last event that it has.
  class FaithfulReader
    # @return [Integer] how often it has come back
    attr_reader :returns

    # @param hub [NativeHub]
    # @param random [Random]
    # @param after [String] id of the event behind which it begins
    def initialize(hub, random, after:)
      @hub = hub
      @random = random
      @last_id = after
      @data = []
      @returns = -1
    end

    # @return [void] when it is there
    def begin
      come
      @thread = Thread.new { read }
      @thread.report_on_exception = false
    end

    # @return [Array<String>] all that it got, up to the end
    def finish
      @thread.join(180) || raise("a faithful reader does not get to the end: it has #{@data.size}")
      @data
    ensure
      @stream&.close
    end

    private

    def read
      until @data.last == END_OF_ALL
        come_back if @random.rand < 0.01
        take
      end
      @data.pop
    end

    # A gap would be a loss: the history is long enough. The hub ends streams, too.
    def take
      event = @stream.next(20)
      raise "lost: #{event.data}" if event.type == "mercure"
      @data << event.data
      @last_id = event.id
    rescue EOFError
      come_back
    end

    # What was on its way is lost to it, and comes again.
    def come_back
      @stream.close
      sleep @random.rand * 0.05
      come
    end

    def come
      @stream = @hub.subscribe({match: "#{BOOK}/faithful"}, headers: {"last-event-id" => @last_id})
      raise "a reader was not let in: #{@stream.status} #{@stream.body}" unless @stream.is_a?(EventStream)
      @returns += 1
    end
  end
end
