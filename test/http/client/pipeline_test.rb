# frozen_string_literal: true

require "test_helper"
require "hikyaku/http/client/transaction"
require "hikyaku/http/client/pipeline"
require "hikyaku/http/client/response_matcher"
require "hikyaku/http/request"

class HTTPClientPipelineTest < Minitest::Test
  Client = Hikyaku::HTTP::Client
  Pipeline = Client::Pipeline
  Malformed = Hikyaku::HTTP::Parser::Malformed
  private_constant :Client, :Pipeline, :Malformed

  # Keeps what it is told.
  class Listener
    attr_reader :status, :body, :seconds

    def initialize
      @body = "".b
      @told = []
    end

    # @return [Array<Integer>] statuses of what came before the answer
    def before = @before ||= []

    def interim(response) = before << response.status

    def answered(response)
      @told << :answered
      @status = response.status
    end

    def came(bytes)
      @told << :came unless @told.last == :came
      @body << bytes
    end

    def unfinished = nil

    def finished(seconds)
      @told << :finished
      @seconds = seconds
    end

    def told = @told.dup

    def answer = finished? ? [@status, @body] : nil

    def finished? = @told.last == :finished
  end

  ONE = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\none"
  TWO = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nt\r\n2\r\nwo\r\n0\r\n\r\n"
  EMPTY = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
  LAST = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 3\r\n\r\none"
  UNTIL_CLOSE = "HTTP/1.1 200 OK\r\n\r\n"
  EARLY = "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n"
  CONTINUE = "HTTP/1.1 100 Continue\r\n\r\n"
  private_constant :ONE, :TWO, :EMPTY, :LAST, :UNTIL_CLOSE, :EARLY, :CONTINUE

  def setup
    @pipeline = Pipeline.new
    @events = []
  end

  test "answers go to requests in their order, however they are cut" do
    bytes = ONE + TWO + EMPTY
    [bytes.bytesize, *1..7].each do |step|
      setup
      asked = ask("/1", "/2", "/3")
      (0...bytes.bytesize).step(step) { |at| receive(bytes.byteslice(at, step)) }
      assert_equal [[200, "one"], [200, "two"], [404, ""]], asked.map { |exchange| exchange.listener.answer }, "#{step} at a time"
      assert_equal [3, []], [@pipeline.answered, @pipeline.unanswered]
      refute @pipeline.begun? || @pipeline.last? || @pipeline.over?
    end
    (1...bytes.bytesize).each do |cut|
      setup
      asked = ask("/1", "/2", "/3")
      receive(bytes.byteslice(0, cut))
      receive(bytes.byteslice(cut..))
      assert_equal [[200, "one"], [200, "two"], [404, ""]], asked.map { |exchange| exchange.listener.answer }, "cut after #{cut}"
    end
  end

  test "each is told of its answer, of pieces of it, and of its end" do
    one, two = ask("/1", "/2")
    receive(ONE + TWO)
    assert_equal [%i[answered came finished]] * 2, [one, two].map { |exchange| exchange.listener.told }
    assert_equal [[:head, one, 0], [:end, one, 41], [:head, two, 0], [:end, two, 50]], @events
  end

  test "requests may be added while answers come" do
    first, = ask("/1")
    receive(ONE[0, 30])
    assert_predicate @pipeline, :begun?
    second, = ask("/2")
    receive(ONE[30..] + TWO)
    assert_equal [[200, "one"], [200, "two"]], [first, second].map { |exchange| exchange.listener.answer }
    third, = ask("/3")
    receive(EMPTY)
    assert_equal [404, ""], third.listener.answer
  end

  test "whether there is a body follows from the request and the status" do
    asked = [exchange("/", method: "HEAD"), exchange("/"), exchange("/", headers: {"If-None-Match" => '"a"'}), exchange("/", method: "HEAD"), exchange("/")]
    asked.each { |one| @pipeline.push(one) }
    receive("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nHTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 304 Not Modified\r\nContent-Length: 50\r\n\r\n" \
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n#{ONE}")
    assert_equal [[200, ""], [204, ""], [304, ""], [200, ""], [200, "one"]], asked.map { |one| one.listener.answer }
  end

  test "an interim answer is none" do
    one, two = ask("/1", "/2")
    receive(CONTINUE + EARLY)
    assert_equal [[], []], [one, two].map { |exchange| exchange.listener.told }
    assert_nil @pipeline.response
    receive(EARLY + ONE + CONTINUE + TWO)
    assert_equal [[200, "one"], [200, "two"]], [one, two].map { |exchange| exchange.listener.answer }
  end

  test "there are 16 interim answers to a request, and not one more" do
    asked = ask("/1", "/2")
    receive(EARLY * 16 + ONE + CONTINUE * 16 + TWO)
    assert asked.all? { |exchange| exchange.listener.finished? }
    ask("/3")
    refute_predicate assert_raises(Pipeline::Doubtful) { receive(EARLY * 17) }, :surplus?
  end

  test "another protocol is not taken" do
    one, = ask("/1")
    assert_raises(Pipeline::Doubtful) { receive("HTTP/1.1 101 x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n") }
    assert_empty one.listener.told
  end

  SURPLUS = ["H", ONE, "\r\n", "\0", "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n\r\n", CONTINUE].freeze
  private_constant :SURPLUS

  test "what comes when nothing was asked is no answer" do
    SURPLUS.each do |surplus|
      setup
      assert_predicate assert_raises(Pipeline::Doubtful, surplus.inspect) { receive(surplus) }, :surplus?
      setup
      one, = ask("/1")
      receive(ONE)
      assert_predicate assert_raises(Pipeline::Doubtful, surplus.inspect) { receive(surplus) }, :surplus?
      assert_equal [200, "one"], one.listener.answer
    end
  end

  test "what stands right behind the last answer is no answer either, and the answers before it are told" do
    SURPLUS.each do |surplus|
      setup
      one, two = ask("/1", "/2")
      assert_predicate assert_raises(Pipeline::Doubtful, surplus.inspect) { receive(ONE + TWO + surplus) }, :surplus?
      assert_equal [[200, "one"], [200, "two"]], [one, two].map { |exchange| exchange.listener.answer }
    end
  end

  test "what the server says is its last answer is the last: what was asked after it was not looked at" do
    one, two, three = ask("/1", "/2", "/3")
    receive(ONE + LAST + TWO)
    assert_equal [[200, "one"], [200, "one"], nil], [one, two, three].map { |exchange| exchange.listener.answer }
    assert @pipeline.last? && @pipeline.over?
    assert_equal [three], @pipeline.give_up
    assert_empty @pipeline.unanswered
  end

  test "HTTP/1.0 closes, unless it says that it does not" do
    {"HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\none" => true, "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 3\r\n\r\none" => false}.each do |bytes, over|
      setup
      ask("/1", "/2")
      receive(bytes)
      assert_equal over, @pipeline.over?, bytes
    end
  end

  test "an answer until the connection is closed ends then, and is the last" do
    one, two = ask("/1", "/2")
    receive("#{UNTIL_CLOSE}on")
    receive("e#{ONE}")
    assert_equal [[:head, one, 0]], @events
    @pipeline.close(9.0) { |*about| event(*about) }
    assert_equal [200, "one#{ONE}"], one.listener.answer
    assert_equal [two], @pipeline.unanswered
    assert_predicate @pipeline, :over?
  end

  test "a connection that is closed in the middle of an answer leaves it unfinished" do
    [ONE, TWO].each do |bytes|
      (1...bytes.bytesize).each do |size|
        setup
        one, two = ask("/1", "/2")
        receive(bytes.byteslice(0, size))
        assert_equal :truncated, assert_raises(Malformed, "after #{size}") { @pipeline.close(1.0) { |*about| event(*about) } }.reason
        refute_predicate one.listener, :finished?
        assert_equal [one, two], @pipeline.unanswered
      end
    end
  end

  test "a connection that is closed between answers tells nothing" do
    one, two = ask("/1", "/2")
    receive(ONE)
    @pipeline.close(1.0) { flunk "something was told" }
    assert_equal [[200, "one"], nil], [one, two].map { |exchange| exchange.listener.answer }
    assert_equal [two], @pipeline.unanswered
  end

  BROKEN = [
    "GET / HTTP/1.1\r\n", "HTTP/2 200 OK\r\n", "HTTP/1.1 20 OK\r\n", "HTTP/1.1  200 OK\r\n", "\r\n", "<html>\r\n", "\x16\x03\x01\n", "HTTP/1.1 200 OK\rX: y\n\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 1, 2\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
    "HTTP/1.1 200 OK\r\nX : y\r\n\r\n", "HTTP/1.1 200 OK\r\n X: y\r\n\r\n", "HTTP/1.1 200 OK\r\nX: \0\r\n\r\n", "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n",
    "HTTP/1.1 100 Continue\r\nTransfer-Encoding: chunked\r\n\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc",
    "HTTP/1.1 200 OK\r\n#{"X: y\r\n" * 101}\r\n", "HTTP/1.1 200 OK\r\nX: #{"y" * 40_000}"
  ].map(&:b).freeze
  private_constant :BROKEN

  test "an answer that cannot be read is refused, and those before it are told" do
    BROKEN.each do |bytes|
      setup
      one, two, three = ask("/1", "/2", "/3")
      assert_raises(Malformed, bytes[0, 80].inspect) { receive(ONE + bytes + TWO) }
      assert_equal [[200, "one"], nil, nil], [one, two, three].map { |exchange| exchange.listener.answer }
      assert_equal [two, three], @pipeline.unanswered
    end
  end

  test "limits are those of the parser" do
    @pipeline = Pipeline.new(max_head_bytes: 30)
    ask("/1")
    assert_raises(Malformed) { receive(ONE) }
  end

  test "an answer that is not whose it seems is told to nobody" do
    one, two = ask("/a.png", "/b.css")
    error = assert_raises(Pipeline::Doubtful) { receive("HTTP/1.1 200 OK\r\nContent-Type: text/css\r\nContent-Length: 3\r\n\r\none") }
    refute_predicate error, :surplus?
    assert_equal [[], []], [one, two].map { |exchange| exchange.listener.told }
    assert_empty @events
    assert_equal [one, two], @pipeline.give_up
  end

  test "an answer is compared with what was answered already, since nothing was under way" do
    type = "HTTP/1.1 200 OK\r\nContent-Type: text/css\r\nContent-Length: 0\r\n\r\n"
    ask("/a.css", "/b.png")
    assert_raises(Pipeline::Doubtful) { receive(type + type) }
    setup
    ask("/a.css")
    receive(type)
    one, = ask("/b.png")
    receive(type)
    assert_equal [200, ""], one.listener.answer
  end

  test "entity tags are compared with what is known" do
    @pipeline = Pipeline.new(tags: Client::EntityTags.new)
    tagged = ->(status, tag) { receive("HTTP/1.1 #{status} OK\r\nETag: \"#{tag}\"\r\nContent-Length: 0\r\n\r\n") }
    ask("/1", "/2", "/3")
    [[200, "1"], [200, "2"], [404, "3"]].each { |status, tag| tagged.call(status, tag) }
    ask("/1", "/3")
    [[200, "1"], [404, "1"]].each { |status, tag| tagged.call(status, tag) }
    ask("/1", "/2")
    tagged.call(200, "1")
    assert_raises(Pipeline::Doubtful) { tagged.call(200, "1") }
  end

  test "the rest of a long answer that nobody wants is not read" do
    {"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n" => true, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n" => true, UNTIL_CLOSE => true,
     "HTTP/1.1 200 OK\r\nContent-Length: 60000\r\n\r\n" => false}.each do |head, unwanted|
      setup
      one, = ask("/1")
      receive("#{head}abc")
      one.cancel!
      call = -> { receive(head.include?("chunked") ? "\r\n3\r\ndef" : "def") }
      unwanted ? assert_raises(Pipeline::Unwanted, head, &call) : call.call
      assert_equal [one], @pipeline.unanswered
    end
  end

  test "a short answer that nobody wants is read, so that the next one can be" do
    one, two = ask("/1", "/2")
    one.cancel!
    receive(ONE + TWO)
    assert_equal [200, "two"], two.listener.answer
  end

  test "the rest of a long answer is read when little of it is left" do
    one, = ask("/1")
    receive("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n#{"x" * 50_000}")
    one.cancel!
    receive("x" * 50_000)
    assert_equal 1, @pipeline.answered
  end

  test "times are taken: when an answer began, and how long all of it took" do
    one, two = ask("/1", "/2", now: 10.0)
    receive(EARLY, 11.0)
    assert_nil one.begun_at
    receive(ONE[0, 40], 12.0)
    assert_equal [12.0, nil], [one.begun_at, two.begun_at]
    receive(ONE[40..], 12.5)
    assert_equal [12.0, 2.5], [one.begun_at, one.listener.seconds]
    receive(TWO, 14.0)
    assert_equal [14.0, 4.0], [two.begun_at, two.listener.seconds]
  end

  test "of answers that are coming, what has come is no longer to come" do
    assert_equal 0, @pipeline.bytes_to_come(1_000.0)
    ask("/1", "/2")
    exchange("/3", headers: {"If-None-Match" => '"a"'}).then { |one| @pipeline.push(one) }
    assert_equal 2_300.0, @pipeline.bytes_to_come(1_000.0)
    receive("HTTP/1.1 200 OK\r\nContent-Length: 3000\r\n\r\n")
    receive("x" * 500)
    assert_in_delta 1_300 + 2_500, @pipeline.bytes_to_come(1_000.0), 50
    receive("x" * 2_500)
    assert_equal 1_300.0, @pipeline.bytes_to_come(1_000.0)
    receive("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n190\r\n#{"x" * 400}\r\n")
    assert_in_delta 300 + 600, @pipeline.bytes_to_come(1_000.0), 60
    receive("FFF\r\n#{"x" * 4_095}\r\n")
    assert_equal 300.0, @pipeline.bytes_to_come(1_000.0)
  end

  test "a batch is what was asked since nothing was under way" do
    assert_equal 0, @pipeline.batch_size
    ask("/1", "/2")
    receive(ONE)
    ask("/3")
    assert_equal 3, @pipeline.batch_size
    receive(TWO + EMPTY)
    assert_equal 3, @pipeline.batch_size
    ask("/4")
    assert_equal 1, @pipeline.batch_size
  end

  test "a batch may be of any size, and answers are compared with their neighbours in it" do
    paths = Array.new(150) { |i| "/#{i}.png" }
    ask(*paths, "/last.css")
    assert_equal 151, @pipeline.batch_size
    receive("HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nContent-Length: 0\r\n\r\n" * 149)
    assert_equal 151, @pipeline.batch_size
    assert_raises(Pipeline::Doubtful) { receive("HTTP/1.1 200 OK\r\nContent-Type: text/css\r\nContent-Length: 0\r\n\r\n") }
  end

  test "of what was answered on a connection that is never idle no more is kept than is of use" do
    ask("/first.css", "/1.png")
    200.times do |i|
      ask("/#{i}.png")
      receive("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    end
    assert_equal 66, @pipeline.instance_variable_get(:@batch).size
    assert_equal 202, @pipeline.batch_size
  end

  test "the status of the answer that came last is known" do
    assert_nil @pipeline.last_status
    ask("/1", "/2")
    receive(ONE)
    assert_equal 200, @pipeline.last_status
    receive(EMPTY)
    assert_equal 404, @pipeline.last_status
  end

  test "it is midway when some of what was asked together was answered, and some not" do
    refute_predicate @pipeline, :midway?
    ask("/1", "/2")
    refute_predicate @pipeline, :midway?
    receive(ONE)
    assert_predicate @pipeline, :midway?
    receive(TWO)
    refute_predicate @pipeline, :midway?
    ask("/3")
    refute_predicate @pipeline, :midway?
  end

  test "a refusal of what came behind others may be because of that: it is told to nobody" do
    [400, 408, 501, 505].each do |status|
      setup
      one, two, three = ask("/1", "/2", "/3")
      assert_raises(Pipeline::Balked) { receive("#{ONE}HTTP/1.1 #{status} x\r\nContent-Length: 0\r\n\r\n") }
      assert_equal [[200, "one"], nil], [one, two].map { |exchange| exchange.listener.answer }
      assert_empty two.listener.told
      assert_equal [two, three], @pipeline.give_up
    end
  end

  test "a refusal of what came first, or alone, or for reasons of its own, is an answer" do
    [400, 408, 501, 505].each do |status|
      setup
      one, = ask("/1", "/2")
      receive("HTTP/1.1 #{status} x\r\nContent-Length: 0\r\n\r\n")
      assert_equal [status, ""], one.listener.answer
    end
    [401, 403, 404, 414, 429, 500, 502, 503].each do |status|
      setup
      _, two = ask("/1", "/2")
      receive("#{ONE}HTTP/1.1 #{status} x\r\nContent-Length: 0\r\n\r\n")
      assert_equal [status, ""], two.listener.answer
    end
    setup
    _, two = ask("/1", "/2")
    two.solitary!
    receive("#{ONE}HTTP/1.1 400 x\r\nContent-Length: 0\r\n\r\n")
    assert_equal [400, ""], two.listener.answer
  end

  test "the tail may be given up: the one whose turn it is is still answered, and then it is over" do
    one, two, three = ask("/1", "/2", "/3")
    receive(ONE[0, 40])
    assert_equal [two, three], @pipeline.give_up_tail
    assert_equal [[one], true, false], [@pipeline.unanswered, @pipeline.last?, @pipeline.over?]
    receive(ONE[40..])
    assert_equal [200, "one"], one.listener.answer
    assert_predicate @pipeline, :over?
  end

  test "what comes for a tail that was given up is not looked at" do
    one, two = ask("/1", "/2")
    @pipeline.give_up_tail
    receive(ONE + TWO)
    assert_equal [[200, "one"], nil], [one, two].map { |exchange| exchange.listener.answer }
    assert_predicate @pipeline, :over?
  end

  test "the time of a head is its own: from its first byte, and what stood still meanwhile does not count" do
    ask("/1", "/2", "/3")
    assert_nil @pipeline.ends_by(5)
    receive(ONE[0, 10], 0.0)
    receive(ONE[10, 5], 4.0)
    assert_equal [5.0, false, true], [@pipeline.ends_by(5), @pipeline.head_late?(5, 4.9), @pipeline.head_late?(5, 5.0)]
    receive(ONE[15..] + TWO[0, 10], 4.5)
    assert_equal 9.5, @pipeline.ends_by(5)
    @pipeline.resumed(20.0)
    assert_equal 25.0, @pipeline.ends_by(5)
    receive(TWO[10..] + EARLY + ONE[0, 10], 21.0)
    assert_equal 26.0, @pipeline.ends_by(5)
    receive(ONE[10..-2], 22.0)
    assert_nil @pipeline.ends_by(5)
    receive(ONE[-1], 90.0)
    @pipeline.resumed(91.0)
    assert_nil @pipeline.ends_by(5)
  end

  test "where there is no tail nothing is given up" do
    assert_equal [], @pipeline.give_up_tail
    setup
    one, = ask("/1")
    assert_equal [[], [one]], [@pipeline.give_up_tail, @pipeline.unanswered]
  end

  private

  def exchange(path, method: "GET", headers: {}, now: 0.0)
    request = Hikyaku::HTTP::Request.new(method, "http://a.example#{path}", headers: headers)
    Client::Exchange.new(request, Listener.new, number: 0).tap { |one| one.sent!(now) }
  end

  def ask(*paths, now: 0.0) = paths.map { |path| exchange(path, now: now).tap { |one| @pipeline.push(one) } }

  def receive(bytes, now = 1.0) = @pipeline.receive(bytes, now) { |*about| event(*about) }

  def event(name, exchange, _response, size) = @events << [name, exchange, size]
end
