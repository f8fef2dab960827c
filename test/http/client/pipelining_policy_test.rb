# frozen_string_literal: true

require "test_helper"
require "json"
require "hikyaku/http/client/pipelining_policy"
require "hikyaku/http/parser"

class HTTPClientPipeliningPolicyTest < Minitest::Test
  PipeliningPolicy = Hikyaku::HTTP::Client::PipeliningPolicy
  NOW = 1_700_000_000.0
  HOUR = 3_600.0
  DAY = 86_400.0
  STATES = %i[unknown eligible pipe serial].freeze
  private_constant :PipeliningPolicy, :NOW, :HOUR, :DAY, :STATES

  def setup = @verdict = PipeliningPolicy.new(now: NOW)

  test "nothing is known at first" do
    assert_equal [:unknown, false, nil], [@verdict.state(NOW), @verdict.pipe?(NOW), @verdict.most_per_connection]
    assert_match(/not known/, @verdict.explanation(NOW))
  end

  # The fields of a first answer, its status and version; what follows.
  FIRST = [
    [{}, 200, 1, :eligible], [{}, 404, 1, :eligible], [{}, 304, 1, :eligible], [{}, 500, 1, :eligible], [{"Server" => "nginx"}, 200, 1, :eligible],
    [{"Connection" => "keep-alive", "Via" => "1.1 squid"}, 200, 1, :eligible],
    [{"Connection" => "close"}, 200, 1, :unknown], [{"Connection" => "x, Close"}, 200, 1, :unknown], [{"Content-Length" => nil}, 200, 1, :unknown],
    [{}, 401, 1, :unknown], [{}, 407, 1, :unknown], [{"WWW-Authenticate" => "Basic realm=\"x\""}, 401, 1, :unknown],
    [{}, 200, 0, :serial], [{"Connection" => "keep-alive"}, 200, 0, :serial],
    [{"WWW-Authenticate" => "NTLM"}, 401, 1, :serial], [{"WWW-Authenticate" => "negotiate abc"}, 401, 1, :serial], [{"WWW-Authenticate" => "Negotiate"}, 200, 1, :serial]
  ].freeze
  private_constant :FIRST

  test "the first answer tells whether it is worth a probe" do
    FIRST.each do |fields, status, minor, state|
      setup
      @verdict.met(answer(fields, status: status, minor: minor), NOW)
      assert_equal state, @verdict.state(NOW), [fields, status, minor].inspect
      refute @verdict.pipe?(NOW)
    end
  end

  test "what does not speak for it is said, until an answer does" do
    {{"Connection" => "close"} => [200, /is not pipelined: it closes the connection after an answer/], {"Content-Length" => nil} => [200, /closes the connection/],
     {} => [401, /is not pipelined: it wants to know who asks/]}.each do |fields, (status, message)|
      setup
      @verdict.met(answer(fields, status: status), NOW)
      assert_match message, @verdict.explanation(NOW)
      again = PipeliningPolicy.new(@verdict.record, now: NOW)
      assert_match(/not known yet/, again.explanation(NOW))
      @verdict.met(answer({}), NOW)
      assert_match(/not pipelined yet/, @verdict.explanation(NOW))
      refute_includes @verdict.record, "why"
    end
  end

  SUSPECTS = ["Microsoft-IIS/5.0", "Microsoft-IIS/4.0", "Netscape-Enterprise/3.6 SP3", "Netscape-Enterprise/6.0", "EFAServer/1", "WebLogic 5.1.0", "Winstone Servlet Engine v0.9.10"].freeze
  OTHERS = ["Microsoft-IIS/10.0", "Microsoft-IIS/50", "Netscape-Enterprise/7.0", "nginx/1.22.1", "Apache Microsoft-IIS/5.0", "WebLogic 10", "WebLogic", "microsoft-iis/5.0", "", "\xFF".b].freeze
  private_constant :SUSPECTS, :OTHERS

  test "servers that are known to fail are not probed, and named" do
    SUSPECTS.each do |server|
      setup
      @verdict.met(answer({"Server" => server}), NOW)
      assert_equal :serial, @verdict.state(NOW), server
      assert_includes @verdict.explanation(NOW), server[0, 9]
    end
    OTHERS.each do |server|
      setup
      @verdict.met(answer({"Server" => server}), NOW)
      assert_equal :eligible, @verdict.state(NOW), server.inspect
    end
  end

  test "a proxy of HTTP/1.0 on the way is seen" do
    {"1.0 squid" => :serial, "HTTP/1.0 squid" => :serial, "1.1 a, 1.0 b" => :serial, "1.1 a,http/1.0 b" => :serial, "1.0\tsquid" => :serial,
     "1.1 squid" => :eligible, "1.1 squid (1.0 inside)" => :eligible, "11.0 x" => :eligible, "1.0" => :eligible, "HTTP/1.1 b" => :eligible, "1.1 a1.0 b" => :eligible,
     "2.0 x" => :eligible, "" => :eligible, "1X0 b" => :eligible}.each do |via, state|
      setup
      @verdict.met(answer({"Via" => via}), NOW)
      assert_equal state, @verdict.state(NOW), via
    end
    setup
    @verdict.met(answer({"Via" => "1.1 a", "via" => "1.0 b"}), NOW)
    assert_equal :serial, @verdict.state(NOW)
  end

  test "a probe that is answered opens the pipe, and only where one was due" do
    @verdict.probed(NOW)
    assert_equal :unknown, @verdict.state(NOW)
    piped
    assert_equal [:pipe, true], [@verdict.state(NOW), @verdict.pipe?(NOW)]
    @verdict.met(answer({}), NOW)
    @verdict.met(answer({}, status: 401), NOW)
    @verdict.met(answer({"Connection" => "close"}), NOW)
    assert_equal :pipe, @verdict.state(NOW)
    setup
    @verdict.ban!(:corrupt, NOW)
    @verdict.probed(NOW)
    assert_equal :serial, @verdict.state(NOW)
  end

  test "an answer of HTTP/1.0 closes the pipe" do
    piped
    @verdict.met(answer({}, minor: 0), NOW)
    assert_equal :serial, @verdict.state(NOW)
    assert_includes @verdict.explanation(NOW), "HTTP/1.0"
  end

  test "mishaps cost what they weigh" do
    {closed: 0, reset: 0, slow: 4, discarded: 0, stalled: 0, balked: 0}.each do |what, most|
      setup
      piped
      most.times { @verdict.failed(what, NOW) }
      assert_equal :pipe, @verdict.state(NOW), what
      @verdict.failed(what, NOW)
      assert_equal :serial, @verdict.state(NOW), what
      assert_match(/not pipelined/, @verdict.explanation(NOW))
    end
    assert_raises(KeyError) { PipeliningPolicy.new(now: NOW).failed(:whatever, NOW) }
  end

  test "what went well is credit, up to a limit" do
    piped
    100.times { @verdict.succeeded(NOW) }
    assert_equal 20.0, @verdict.record["score"]
    4.times { @verdict.failed(:closed, NOW) }
    assert_equal [:pipe, 0.0], [@verdict.state(NOW), @verdict.record["score"]]
    @verdict.failed(:slow, NOW)
    assert_equal :serial, @verdict.state(NOW)
  end

  test "a probe that fails is not repeated for hours, and then it is" do
    @verdict.met(answer({}), NOW)
    @verdict.failed(:discarded, NOW)
    (0..4).each { |hours| assert_equal :serial, @verdict.state(NOW + hours * HOUR), "#{hours} h" }
    assert_equal :unknown, @verdict.state(NOW + 5 * HOUR)
    @verdict.met(answer({}), NOW + 5 * HOUR)
    assert_equal :eligible, @verdict.state(NOW + 5 * HOUR)
  end

  test "while it is not pipelined nothing counts" do
    piped
    @verdict.failed(:closed, NOW)
    score = @verdict.record["score"]
    10.times { @verdict.failed(:discarded, NOW) }
    assert_equal score, @verdict.record["score"]
  end

  test "a score goes to half in an hour" do
    piped
    16.times { @verdict.succeeded(NOW) }
    @verdict.succeeded(NOW + HOUR)
    assert_in_delta 11.0, @verdict.record["score"], 0.01
    @verdict.failed(:closed, NOW + 2 * HOUR)
    assert_in_delta 0.5, @verdict.record["score"], 0.01
    assert_equal :pipe, @verdict.state(NOW + 2 * HOUR)
  end

  test "a clock that goes back changes nothing" do
    piped
    4.times { @verdict.succeeded(NOW) }
    @verdict.succeeded(NOW - 10 * DAY)
    assert_in_delta 9.0, @verdict.record["score"], 0.01
    @verdict.ban!(:corrupt, NOW)
    assert_equal :serial, @verdict.state(NOW - DAY)
  end

  test "the score of a probe is as old as the probe, however long ago the origin was met" do
    later = NOW + 10 * HOUR
    @verdict.met(answer({}), NOW)
    @verdict.probed(later)
    @verdict.failed(:slow, later)
    assert_equal :pipe, @verdict.state(later)
    assert_in_delta 3.0, @verdict.record["score"], 0.01
  end

  test "what is forbidden is forbidden for a day" do
    %i[corrupt doubtful old bound].each do |why|
      setup
      piped
      20.times { @verdict.succeeded(NOW) }
      @verdict.ban!(why, NOW)
      assert_equal :serial, @verdict.state(NOW)
      assert_equal :serial, @verdict.state(NOW + DAY - 1), why
      assert_match(/a day has passed/, @verdict.explanation(NOW))
      assert_equal [:unknown, 0.0], [@verdict.state(NOW + DAY), @verdict.record["score"]], why
    end
  end

  test "everything is explained in a sentence of its own" do
    sentences = %i[discarded stalled balked slow closed reset].map do |what|
      setup
      piped
      10.times { @verdict.failed(what, NOW) }
      @verdict.explanation(NOW)
    end
    sentences += [:corrupt, :doubtful, :old, :bound, "EFAServer/"].map do |why|
      setup
      @verdict.ban!(why, NOW)
      @verdict.explanation(NOW)
    end
    setup
    sentences << @verdict.explanation(NOW)
    @verdict.met(answer({}), NOW)
    sentences << @verdict.explanation(NOW)
    @verdict.probed(NOW)
    sentences << @verdict.explanation(NOW)
    assert_equal sentences.size, sentences.uniq.size
    sentences.each { |sentence| assert_match(/\Ais [a-z].+[a-z0-9)]\z/, sentence) }
    assert_match(/within [1-9]\d* h/, sentences.first)
  end

  # What Keep-Alive says, and how many answers that makes with the one that said it.
  LIMITS = {
    "timeout=5, max=100" => 101, "max=100" => 101, "MAX = 7" => 8, "max=1" => 2, "max=0" => 2, "timeout=5" => nil, "" => nil, "max=x" => nil, "max=-5" => nil, "maximum=5" => nil,
    "climax=5" => nil, "max=\"5\"" => nil, "max=#{"9" * 1_000}" => 1_000_000
  }.freeze
  private_constant :LIMITS

  test "a server says how many answers it gives on a connection" do
    LIMITS.each do |value, most|
      setup
      @verdict.met(answer({"Keep-Alive" => value}), NOW)
      assert_most most, value[0, 20]
    end
    @verdict.met(answer({"Keep-Alive" => "max=5"}), NOW)
    assert_equal 1_000_000, @verdict.most_per_connection
  end

  test "or is seen to, when it said that it closes: none at all tells nothing of the kind" do
    {[] => nil, [0] => nil, [1] => 1, [2] => 2, [5] => 5, [5, 9] => 9}.each do |counts, most|
      setup
      counts.each { |count| @verdict.closed_after(count) }
      assert_most most, counts.inspect
    end
  end

  test "or twice in the same way, when it said nothing" do
    {[5] => nil, [5, 6] => nil, [5, 1, 5] => nil, [1] => nil, [1, 1] => 1, [0, 0] => nil, [5, 5] => 5, [4, 5, 5] => 5, [5, 5, 9] => 5, [5, 5, 9, 9] => 9}.each do |counts, most|
      setup
      counts.each { |count| @verdict.closed_after(count, told: false) }
      assert_most most, counts.inspect
    end
  end

  test "what looked like a mishap and was none is taken back" do
    piped
    @verdict.failed(:stalled, NOW)
    @verdict.forgive(:stalled, NOW + 60)
    assert_equal :pipe, @verdict.state(NOW + 60)
    setup
    @verdict.met(answer({}), NOW)
    @verdict.failed(:discarded, NOW)
    @verdict.forgive(:discarded, NOW)
    assert_equal :eligible, @verdict.state(NOW)
  end

  test "what cost nothing is not given back" do
    piped
    @verdict.forgive(:stalled, NOW)
    assert_in_delta 4.0, @verdict.record["score"]
    @verdict.failed(:stalled, NOW)
    5.times { @verdict.failed(:stalled, NOW) }
    5.times { @verdict.forgive(:stalled, NOW) }
    assert_in_delta 4.0, @verdict.record["score"]
    @verdict.failed(:slow, NOW)
    @verdict.forgive(:closed, NOW)
    assert_in_delta 3.0, @verdict.record["score"]
  end

  test "no more is given back than is left of what it cost" do
    piped
    16.times { @verdict.succeeded(NOW) }
    @verdict.failed(:closed, NOW)
    @verdict.succeeded(NOW + HOUR)
    @verdict.forgive(:closed, NOW + HOUR)
    assert_in_delta 11.0, @verdict.record["score"]
  end

  test "what is forbidden is not owed anything, and neither is who begins anew" do
    piped
    @verdict.failed(:closed, NOW)
    @verdict.ban!(:corrupt, NOW)
    assert_equal :unknown, @verdict.state(NOW + DAY)
    @verdict.forgive(:closed, NOW + DAY)
    assert_in_delta 0.0, @verdict.record["score"]
    setup
    piped
    @verdict.failed(:discarded, NOW)
    assert_equal :unknown, @verdict.state(NOW + 6 * HOUR)
    @verdict.forgive(:discarded, NOW + 6 * HOUR)
    assert_in_delta 0.0, @verdict.record["score"]
  end

  # How it was learnt that there are 5 answers on a connection; and whether another that is kept open with its fifth, or still stands long after it, speaks against it.
  WAYS = {
    word: [->(limit) { limit.closed_after(5) }, true, true], closing: [->(limit) { 2.times { limit.closed_after(5, told: false) } }, false, true],
    silence: [->(limit) { limit.silent_after(5) }, false, false]
  }.freeze
  private_constant :WAYS

  test "how many answers there are is believed until a connection shows that it is wrong" do
    WAYS.each do |way, (learn, kept_open, outlasted)|
      {kept_open: kept_open, outlasted: outlasted}.each do |shows, wrong|
        setup
        learn.call(@verdict.limit)
        again = PipeliningPolicy.new(JSON.parse(JSON.generate({"state" => "pipe", "since" => NOW, "scored_at" => NOW, **@verdict.record.slice("most", "seen_by")})), now: NOW)
        [@verdict, again].each do |verdict|
          verdict.limit.public_send(shows, 4)
          assert_equal 5, verdict.most_per_connection, way
          verdict.limit.public_send(shows, 5)
          assert_equal [wrong ? nil : 5], [verdict.most_per_connection], "#{way}, #{shows}"
        end
      end
    end
  end

  test "silence that was forgiven is no limit" do
    piped
    @verdict.limit.silent_after(3)
    @verdict.failed(:stalled, NOW)
    @verdict.forgive(:stalled, NOW)
    assert_nil @verdict.most_per_connection
    @verdict.closed_after(3)
    @verdict.failed(:stalled, NOW)
    @verdict.forgive(:stalled, NOW)
    assert_equal 3, @verdict.most_per_connection
  end

  test "a ban is not taken back" do
    piped
    @verdict.ban!(:doubtful, NOW)
    @verdict.forgive(:stalled, NOW)
    @verdict.forgive(:balked, NOW)
    assert_equal :serial, @verdict.state(NOW)
    assert_match(/a day has passed/, @verdict.explanation(NOW))
  end

  test "what is known survives as JSON, in every state" do
    makings = {
      unknown: -> {}, eligible: -> { @verdict.met(answer({"Keep-Alive" => "max=9"}), NOW) }, pipe: -> { piped }, serial: -> { @verdict.ban!(:corrupt, NOW) }
    }
    makings.each do |state, make|
      setup
      make.call
      again = PipeliningPolicy.new(JSON.parse(JSON.generate(@verdict.record)), now: NOW + 60)
      assert_equal [state, @verdict.most_per_connection], [again.state(NOW + 60), again.most_per_connection]
      assert_equal @verdict.explanation(NOW + 60).delete_suffix(".0)").delete_suffix(")"), again.explanation(NOW + 60).delete_suffix(".0)").delete_suffix(")")
    end
    setup
    piped
    @verdict.failed(:discarded, NOW)
    again = PipeliningPolicy.new(JSON.parse(JSON.generate(@verdict.record)), now: NOW + 60)
    assert_equal @verdict.explanation(NOW + 60), again.explanation(NOW + 60)
    assert_equal [:serial, :unknown], [again.state(NOW + 60), again.state(NOW + 6 * HOUR)]
  end

  test "a suspect is remembered by its name" do
    @verdict.met(answer({"Server" => "EFAServer/1.0"}), NOW)
    again = PipeliningPolicy.new(JSON.parse(JSON.generate(@verdict.record)), now: NOW + 60)
    assert_includes again.explanation(NOW + 60), "EFAServer/"
  end

  # Numbers as a file may have them, whoever wrote it.
  RECORDS = [
    {}, {"state" => "whatever"}, {"state" => nil}, {"state" => 5}, {"state" => {}}, {"state" => "unknown", "score" => 5},
    {"state" => "pipe", "since" => 0, "scored_at" => 0}, {"state" => "pipe", "since" => 1e300, "scored_at" => 1e300, "score" => 1e300, "most" => -5},
    {"state" => "pipe", "since" => -1e300, "scored_at" => -1e300, "score" => -1e300, "most" => 10**40},
    {"state" => "eligible", "since" => 1, "scored_at" => 1, "score" => 0, "most" => 0, "why" => nil},
    {"state" => "serial", "since" => NOW, "scored_at" => NOW, "why" => "whatever"}, {"state" => "serial", "since" => NOW, "scored_at" => NOW},
    {"state" => "serial", "since" => 0, "scored_at" => 0}, {"state" => "serial", "since" => NOW, "scored_at" => NOW, "score" => -1e9, "why" => {"a" => []}},
    {"state" => "serial", "since" => NOW, "scored_at" => NOW, "score" => 5, "why" => "closed"}
  ].freeze
  private_constant :RECORDS

  test "a record of any numbers makes a verdict that can be used" do
    RECORDS.each do |record|
      verdict = PipeliningPolicy.new(record, now: NOW)
      assert_includes STATES, verdict.state(NOW), record.inspect
      assert_includes 1..1_000_000, verdict.most_per_connection || 1
      refute_empty verdict.explanation(NOW)
      verdict.met(answer({}), NOW)
      verdict.succeeded(NOW)
      verdict.failed(:slow, NOW)
      JSON.generate(verdict.record)
      assert_includes STATES, verdict.state(NOW)
      assert_includes %i[unknown eligible pipe], verdict.state(NOW + 3 * DAY), record.inspect
    end
  end

  private

  def assert_most(most, message) = most ? assert_equal(most, @verdict.most_per_connection, message) : assert_nil(@verdict.most_per_connection, message)

  def piped
    @verdict.met(answer({}), NOW)
    @verdict.probed(NOW)
  end

  def answer(fields, status: 200, minor: 1)
    fields = {"Content-Length" => "0"}.merge(fields).compact
    head = fields.inject("HTTP/1.#{minor} #{status} x\r\n".b) { |lines, (name, value)| lines << name << ": " << value << "\r\n" }
    (Hikyaku::HTTP::Parser.new(:response) << head << "\r\n").next
  end
end
