# frozen_string_literal: true

require "zlib"

# Reads a `text/event-stream` from a connection, as the HTML standard's section "Interpreting an event stream" has it, and
# independently of the library's own reader. Every wait has a deadline.
class EventStream
  Event = Struct.new(:id, :type, :data, keyword_init: true)
  # What "nothing more comes" is worth waiting for, once something else has shown that it would have come.
  SILENCE = 0.15
  PATIENCE = 180
  private_constant :PATIENCE

  # @return [HttpClient::Response] status and headers
  attr_reader :response
  # @return [String] every byte of the body so far, without its coding
  attr_reader :bytes
  # @return [Array<String>] comments so far
  attr_reader :comments
  # @return [Integer, nil] the reconnection time that was told last
  attr_reader :retry_after
  # @return [String] what the client would send to come back
  attr_reader :last_event_id

  # @param connection [HttpClient::Connection] after the header of its response
  def initialize(connection, response)
    @connection = connection
    @response = response
    @inflate = Zlib::Inflate.new(Zlib::MAX_WBITS + 16) if response["content-encoding"] == "gzip"
    @bytes = +"".b
    @buffer = +"".b
    @comments = []
    @events = []
    @ended = false
    @last_event_id = ""
    forget
  end

  def status = @response.status

  def [](header) = @response[header]

  # @return [Event] the next one
  def next(seconds = PATIENCE)
    deadline = HttpClient.now + seconds
    advance(deadline) while @events.empty? && !@ended
    raise EOFError, "the stream ended before the event" if @events.empty?
    @events.shift
  end

  # @return [Array<Event>]
  def take(count, seconds = PATIENCE)
    deadline = HttpClient.now + seconds
    Array.new(count) { self.next([deadline - HttpClient.now, 0.01].max) }
  end

  # @return [Array<Event>] up to the event with this data, without it
  def until(data, seconds = PATIENCE)
    deadline = HttpClient.now + seconds
    found = []
    loop do
      event = self.next([deadline - HttpClient.now, 0.01].max)
      return found if event.data == data
      found << event
    end
  end

  # @return [Array<Event>] what comes until the server ends the stream
  def rest(seconds = PATIENCE)
    deadline = HttpClient.now + seconds
    advance(deadline) until @ended
    @events.shift(@events.size)
  end

  # @return [Array<String>] comments, waiting for so many
  def comments_until(count, seconds = PATIENCE)
    deadline = HttpClient.now + seconds
    advance(deadline) while @comments.size < count && !@ended
    @comments
  end

  # @return [Boolean] whether nothing comes and the stream stays open
  def silent?(seconds = SILENCE)
    advance(HttpClient.now + seconds) while @events.empty? && !@ended
    false
  rescue HttpClient::TooLate
    true
  end

  def ended? = @ended

  def close = @connection.close

  private

  def forget
    @data = nil
    @type = ""
    @id ||= ""
  end

  def advance(deadline)
    chunk = @connection.body_part(deadline) or return @ended = true
    chunk = @inflate.inflate(chunk) if @inflate
    @bytes << chunk
    @buffer << chunk
    while (line = next_line)
      interpret(line.force_encoding(Encoding::UTF_8))
    end
  end

  # A CR at the end of what has come may be half of a CRLF.
  def next_line
    at = @buffer.index(/\r\n|\n|\r(?!\z)/n) or return
    line = @buffer.slice!(0, at)
    @buffer.slice!(0, @buffer.start_with?("\r\n") ? 2 : 1)
    line
  end

  def interpret(line)
    return dispatch if line.empty?
    return @comments << line[1..] if line.start_with?(":")
    name, value = line.split(":", 2)
    field(name, (value || "").delete_prefix(" "))
  end

  def field(name, value)
    case name
    when "event" then @type = value
    when "data" then @data = @data ? "#{@data}\n#{value}" : value
    when "id" then @id = value unless value.include?("\0")
    when "retry" then @retry_after = value.to_i if value.match?(/\A[0-9]+\z/)
    end
  end

  def dispatch
    @last_event_id = @id
    @events << Event.new(id: @id, type: @type.empty? ? "message" : @type, data: @data) if @data
    forget
  end
end
