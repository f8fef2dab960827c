# frozen_string_literal: true

require "test_helper"
require "fiddle"
require "llhttp"
require "hikyaku/http"
require_relative "messages"

# llhttp, the parser of Node.js, as an oracle: what it refuses we refuse, and what we accept has the parts that it sees.
# Where we differ it is on purpose, and said here.
class LLHttpTest < Minitest::Test
  # The gem keeps the addresses of these without telling the garbage collector; other tests let that move objects.
  PINNED = [LLHttp, LLHttp::Error, LLHttp::Parser].map { |object| Fiddle::Pinned.new(object) }

  Message = Struct.new(:start, :minor, :headers, :body, :keep_alive, :ended, keyword_init: true)

  METHODS = %w[GET HEAD POST PUT DELETE CONNECT OPTIONS TRACE PATCH].freeze

  # What it refuses and we do not: its error, what then stands in the bytes or in the messages as we understand them, and why.
  ACCEPTED = [
    [/HPE_INVALID_METHOD/, ->(_, ours) { ours.any? { |message| !METHODS.include?(message.start[/\A\S+/]) } },
      "it knows a list of methods; RFC 9110, section 9.1, lets a method be any token"],
    [/HPE_INVALID_URL Unexpected char in url schema/, ->(_, ours) { ours.any? { |message| message.start.match?(%r{ [A-Za-z]+[0-9+.-][A-Za-z0-9+.-]*://}n) } },
      "digits, '+', '-' and '.' stand in schemes: RFC 3986, section 3.1"],
    [/HPE_INVALID_(?:EOF_STATE|CHUNK_SIZE|CONSTANT)/, ->(_, ours) { ours.any? { |message| bodiless?(message) } },
      "304 has no body, whatever its fields say, nor has 204 that is chunked: RFC 9112, section 6.3, rule 1"],
    [/HPE_(?:UNEXPECTED|INVALID)_CONTENT_LENGTH/, ->(bytes, _) { repeated_length?(bytes) },
      "a response may say the same length several times: RFC 9110, section 8.6"],
    [/HPE_INVALID_CHUNK_SIZE/, ->(bytes, _) { bytes.match?(/\h;[^\r]*;/n) }, "a second extension follows a value: RFC 9112, section 7.1.1"],
    [/HPE_STRICT Invalid character in chunk extensions quoted value/, ->(bytes, _) { bytes.match?(/"[^"]*[\t\\\x80-\xFF]/n) },
      "tabs, escapes and bytes above ASCII stand in quoted strings: RFC 9110, section 5.6.4"],
    [/HPE_INVALID_CONTENT_LENGTH/, ->(bytes, _) { bytes.match?(/content-length:[ \t]*\d+ *\t/in) }, "a tab is white space too: RFC 9110, section 5.6.3"],
    [/HPE_INVALID_HEADER_TOKEN/, ->(bytes, _) { bytes.match?(%r{\AHTTP/.*(?<!\r)\n}mn) }, "a reader may take LF for the end of a line of a response's head: RFC 9112, section 2.2"]
  ].freeze

  # 304 with fields that say how long a body would be, 204 with chunks.
  def self.bodiless?(message)
    message.headers.any? { |name, _| name.match?({"304 " => /\A(?:content-length|transfer-encoding)\z/i, "204 " => /\Atransfer-encoding\z/i}.fetch(message.start[0, 4], /(?!)/)) }
  end

  def self.repeated_length?(bytes)
    lengths = bytes.scan(/^content-length:([^\r]*)/in).flatten.flat_map { |value| value.split(",").map(&:strip) }
    lengths != lengths.uniq && !bytes.match?(%r{ HTTP/1\.\d\r\n}n)
  end

  # What we refuse and it does not: RFC 9112 calls these malformed, or lets a recipient refuse them.
  REFUSED = {
    line_end: "it takes LF alone for the end of a line of requests and chunks",
    start_line: "it takes more empty lines, and empty lines before a response",
    status_code: "it takes less than three digits, and none",
    version: "it takes HTTP/0.9 and HTTP/2.0",
    method: "a message that is no request follows one that ended the connection, or a CR stands before it",
    target: "it takes control bytes and fragments, bytes above ASCII in a host, and asterisks of any method",
    reason: "it takes any byte",
    header_name: "it takes an empty name",
    header_value: "it takes more than one CR at the end of a line",
    folded: "it unfolds lines of requests, and those that frame the message",
    host: "it does not look at the field",
    host_missing: "nor whether it is there",
    host_repeated: "nor how many there are",
    content_length: "it takes more than 20 digits",
    content_length_repeated: "a response with the field twice",
    framing_conflict: "it takes an unknown coding beside a length",
    transfer_encoding: "it takes codings in HTTP/1.0, chunked twice, and responses that do not end with chunked",
    transfer_encoding_unknown: "it takes any coding before chunked",
    body_forbidden: "it takes bodies of CONNECT, 1xx and 204",
    upgrade_missing: "101 that does not say to which protocol is a response like any other to it",
    chunk_size: "it takes more than 16 digits",
    chunk_extension: "it takes empty names and values",
    chunk_end: "it does not look at what follows the data of a chunk",
    trailer_forbidden: "it takes Content-Length among trailers",
    truncated: "an empty line at the end of a connection is nothing to it"
  }.freeze

  # Collects what llhttp says.
  class Listener < LLHttp::Delegate
    attr_accessor :parser
    attr_reader :messages

    def initialize
      @messages = []
    end

    def on_message_begin
      @name = @value = nil
      @messages << Message.new(start: "".b, headers: [], body: "".b)
    end

    def on_url(bytes) = message.start << bytes

    def on_status(bytes) = message.start << bytes

    def on_header_field(bytes) = (@name ||= "".b) << bytes

    def on_header_value(bytes) = (@value ||= "".b) << bytes

    def on_header_value_complete
      message.headers << [@name.to_s, @value.to_s.strip]
      @name = @value = nil
    end

    def on_headers_complete
      message.minor = parser.http_minor
      message.start.prepend((parser.type == :request) ? "#{parser.method_name} " : "#{parser.status_code} ")
      # Trailers are not looked at: RFC 9110, section 6.5.1.
      @fields = message.headers.size
      message.keep_alive = parser.keep_alive?
    end

    def on_body(bytes) = message.body << bytes

    def on_message_complete
      message.ended = true
      message.headers = message.headers.first(@fields)
    end

    private

    def message = @messages.last
  end
  private_constant :Message, :METHODS, :ACCEPTED, :REFUSED, :Listener

  def setup
    @refused = Hash.new(0)
    @compared = 0
  end

  test "requests and responses at random are refused where llhttp refuses them, and understood as it understands them" do
    messages = Messages.new(Random.new(3))
    12_000.times do |index|
      kind = index.even? ? :request : :response
      compare(kind, messages.next(kind))
    end
    assert_operator @compared, :>, 1_500
    assert_empty @refused.keys - REFUSED.keys
    assert_operator @refused.size, :>, 18, @refused
  end

  test "the vectors are refused where llhttp refuses them, and understood as it understands them" do
    Vectors.all.select { |vector| vector.method == "GET" && vector.limits.empty? }.each { |vector| compare(vector.kind, vector.bytes) }
    assert_operator @compared, :>, 80
  end

  private

  def compare(kind, bytes)
    ours, refusal = ours(kind, bytes)
    theirs, error = theirs(kind, bytes)
    # Not that something is wrong, but that no message may follow.
    stops = error&.match?(/HPE_PAUSED_UPGRADE|HPE_CLOSED_CONNECTION/)
    return if error && !stops && !refusal && accepted?(error, bytes, ours)

    refute error && !stops && !refusal, "llhttp refuses this, #{error}: #{bytes.inspect}"
    @refused[refusal] += 1 if refusal && !error
    return if error && accepted?(error, bytes, ours)

    compare_parts(ours, theirs, bytes)
  end

  def compare_parts(ours, theirs, bytes)
    ours.each_with_index do |message, index|
      # It does not know of bodies that are not there: see ACCEPTED.
      break if self.class.bodiless?(message)

      # In HTTP/1.0 keep-alive beats close for it; RFC 9112, section 9.3, has it the other way round.
      [message, theirs[index]].each { |one| squeeze(one) } if bytes.match?(/\n[ \t]/n)
      theirs[index]&.keep_alive = false if message.minor.zero? && message.headers.any? { |name, value| name.casecmp?("connection") && value.match?(/close/i) }
      assert_equal message, theirs[index], "message #{index} of #{bytes.inspect}"
      @compared += 1
      # What follows is to be disregarded, and it does.
      break unless message.keep_alive
    end
  end

  # It keeps the white space around a fold; RFC 9112, section 5.2, lets a reader have one space in its place.
  def squeeze(message) = message&.headers&.map! { |name, value| [name, value.gsub(/[ \t]+/n, " ")] }

  def accepted?(error, bytes, ours) = ACCEPTED.any? { |its, standing, _| its.match?(error) && standing.call(bytes, ours) }

  # @return [Array(Array<Message>, Symbol)] the messages that are whole, and why the next one was refused
  def ours(kind, bytes)
    messages = []
    parser = Hikyaku::HTTP::Parser.new(kind)
    parser << bytes
    parser.close
    while (part = parser.next)
      case part
      when String then messages.last.body << part
      when :end then messages.last.ended = true
      else messages << message_of(part)
      end
    end
    [messages.select(&:ended)]
  rescue Hikyaku::HTTP::Parser::Malformed => error
    [messages.select(&:ended), error.reason]
  end

  def message_of(head)
    start = head.is_a?(Hikyaku::HTTP::Parser::Request) ? "#{head.method} #{head.target}" : "#{head.status} #{head.reason}"
    Message.new(start: start.b, minor: head.minor, headers: head.headers.dup, body: "".b, keep_alive: head.keep_alive?)
  end

  # @return [Array(Array<Message>, String)] the messages, and its error
  def theirs(kind, bytes)
    listener = Listener.new
    listener.parser = LLHttp::Parser.new(listener, type: kind)
    listener.parser << bytes
    listener.parser.finish
    [listener.messages]
  rescue LLHttp::Error => error
    [listener.messages, error.message]
  end
end
