# frozen_string_literal: true

require "fileutils"
require "json"
require "tmpdir"
require "hikyaku/broker"

# What every engine of the broker must do: docs/protocol.md, sentence by sentence. Including tests define
# `new_engine(**options)`, with the options of RubyEngine#initialize but `files`, and `with_failing_storage`, in whose block
# nothing can be written.
#
# The driver here is a test: it owns the clock, and carries bytes between the engine and clients that say what the test says.
module BrokerContract
  Wire = Hikyaku::Broker::Wire
  Code = Wire::Code
  Frames = Wire::Frames
  Permission = Hikyaku::Broker::Permission

  MEMORY = 0
  WRITTEN = 1
  SYNCED = 2

  SEGMENT = 64 * 1024

  # One connection: what it says is done at once, what it hears is kept.
  class Client
    attr_reader :session, :frames
    # Bytes that its socket takes; nil: any number.
    attr_accessor :room

    def initialize(contract, session)
      @contract = contract
      @session = session
      @reader = Wire::Reader.new(from: :broker, max_frame: 1 << 30)
      @frames = []
      @next_id = 0
    end

    # Says frames, and lets a turn pass.
    def say(*frames)
      @contract.feed(self, frames.join)
      self
    end

    # Says a request; its answer.
    def ask(builder, **fields)
      id = fields.delete(:id) || next_id
      say(Wire.public_send(builder, id: id, **fields))
      answer(id)
    end

    def next_id = @next_id += 1

    def hear(bytes) = @reader.read(bytes) { |frame, _| @frames << frame }

    # Takes out the answer to a request: an ACK, ERROR or REPORT; nil: there is none yet.
    def answer(id) = take(1) { |frame| answer_to?(frame, id) }.first

    # The deliveries that came since it was asked last.
    def pushes = take { |frame| frame.is_a?(Frames::Push) }

    def payloads = pushes.map(&:payload)

    def errors = take { |frame| frame.is_a?(Frames::Error) }

    # Takes frames out.
    def take(most = nil)
      found = @frames.select { |frame| yield frame }
      found = found.first(most) if most
      found.each { |frame| @frames.delete_at(@frames.index { |other| other.equal?(frame) }) }
      found
    end

    def sends(queue, payload, **fields) = ask(:send_message, to: queue, payload: payload, **fields)

    def sends_all(queue, payloads, **fields) = ask(:send_batch, to: queue, messages: payloads.map { |payload| ["", payload] }, **fields)

    def receives(queue, number: 1, credit: 100, **fields)
      ask(:subscribe, subscription: number, name: queue, credit: credit, **fields)
      self
    end

    def credits(credit, number: 1, bytes: 0) = ask(:credit, subscription: number, credit: credit, credit_bytes: bytes)

    def frees(first, last = first, **fields) = ask(:free, first: delivery(first), last: delivery(last), **fields)

    def touches(first, last = first, **fields) = ask(:touch, first: delivery(first), last: delivery(last), **fields)

    def releases(push, **fields) = ask(:nack, delivery: delivery(push), kind: 0, **fields)

    def rejects(push, **fields) = ask(:nack, delivery: delivery(push), kind: 1, **fields)

    def buries(push, **fields) = ask(:nack, delivery: delivery(push), kind: 2, **fields)

    # It has this one in hand.
    def holds(push) = say(Wire.receipt(id: delivery(push)))

    # What a QUERY reports, or its ERROR.
    def queries(what, **fields)
      frame = ask(:query, what: what, **fields)
      frame.is_a?(Frames::Report) ? JSON.parse(frame.document, symbolize_names: true) : frame
    end

    # The connection breaks.
    def vanishes = @contract.cut(self)

    private

    def delivery(push) = push.is_a?(Integer) ? push : push.id

    def answer_to?(frame, id)
      case frame
      when Frames::Ack then id.between?(frame.id, frame.last)
      when Frames::Welcome, Frames::Receipt, Frames::Error, Frames::Report then frame.id == id
      end
    end
  end

  QUEUES = 1
  EXPLAIN = 2
  DEAD = 3
  REPLAY = 4
  DROP = 5
  SEGMENTS = 6
  SESSIONS = 7
  PURGE = 8
  IDENTITIES = 16
  DROP_IDENTITY = 17

  # What drives an engine in a test.
  module Driving
    def setup
      super
      @now = 1000.0
      @wall = 1_795_000_000_000
      @clients = {}
      @options = {}
      @folder = nil
      begin_engine
    end

    def teardown
      @engine&.abort
      FileUtils.rm_rf(@folder) if @folder
      super
    end

    # Begins with another engine; with `storage: true` one that keeps a journal.
    def begin_engine(storage: false, **options)
      @engine&.abort
      @folder ||= Dir.mktmpdir("hikyaku-broker-") if storage
      @options = {open: true, **options}
      @options[:storage] = @folder if storage
      start_engine
    end

    def start_engine
      @clients.clear
      @engine = new_engine(now: @now, wall: @wall, **@options)
    end

    # The broker stops in order, and starts again.
    def restart(**options)
      @engine.close(now: @now, wall: @wall)
      @options.merge!(options)
      start_engine
    end

    # The broker is killed, and starts again. A block may change what is in its folder before.
    def crash
      @engine.abort
      yield @folder if block_given?
      start_engine
    end

    # One bit of this text, where it stands in the newest segment.
    def change_byte(folder, text)
      path = Dir["#{folder}/*.seg"].max
      bytes = File.binread(path)
      at = bytes.index(text) or raise "#{text} is not in #{path}"
      bytes.setbyte(at, bytes.getbyte(at) ^ 1)
      File.binwrite(path, bytes)
    end

    def connect(address: "192.0.2.1")
      session = @engine.connect(now: @now, address: address)
      @clients[session] = Client.new(self, session)
    end

    # A client that has said HELLO.
    def client(identity = "", epoch: identity.empty? ? 0 : next_epoch, **fields)
      connect.tap { |each| @welcome = each.ask(:hello, identity: identity, epoch: epoch, **fields) }
    end

    def next_epoch = @epoch = (@epoch || 0) + 1

    def feed(client, bytes)
      return @together << [client, bytes] if @together
      @engine.receive(client.session, bytes, now: @now, wall: @wall)
      turn
    end

    # What is said in the block comes in one turn.
    def together
      @together = []
      yield
      said, @together = @together, nil
      said.each { |client, bytes| @engine.receive(client.session, bytes, now: @now, wall: @wall) }
      turn
    end

    # The end of a turn: what has to be written is, and everybody is told what there is to tell.
    def turn
      @engine.commit(wall: @wall)
      deliver
    end

    def deliver
      steps = 0
      while (session = @engine.next_ready)
        flunk "the engine never rests" if (steps += 1) > 100_000
        client = @clients.fetch(session)
        bytes = @engine.take(session, 65_536)
        assert_operator bytes.bytesize, :<=, 65_536
        count = [client.room || bytes.bytesize, bytes.bytesize].min
        client.hear(bytes.byteslice(0, count))
        client.room -= count if client.room
        @engine.wrote(session, count)
      end
    end

    # What takes long is done, until there is nothing left to do.
    def settle
      turn
      @engine.work
      turn
    end

    def cut(client)
      @engine.disconnect(client.session, now: @now, wall: @wall)
      @clients.delete(client.session)
      turn
    end

    # Time passes.
    def wait(seconds, clock: seconds)
      @now += seconds
      @wall += (clock * 1000).round
      @engine.tick(now: @now, wall: @wall)
      turn
    end

    # As a driver would: time passes as long as the engine has something to do by then.
    def wait_step_by_step(seconds)
      finish = @now + seconds
      while (at = @engine.next_tick) && at <= finish
        step = [at - @now, 0.001].max
        wait(step)
      end
      wait(finish - @now) if finish > @now
    end

    def assert_refused(code, answer)
      assert_kind_of Frames::Error, answer
      assert_equal Code.name_of(code), Code.name_of(answer.code), answer.sentence
      assert_equal Code.later?(code), answer.later?
      refute_empty answer.sentence
      assert answer.sentence.valid_encoding?
      answer
    end

    def assert_taken(answer, level: nil)
      assert_kind_of Frames::Ack, answer
      assert_equal level, answer.level if level
      answer
    end

    # The connection is told why, and ends.
    def assert_ended(client, code)
      error = client.errors.last or flunk "it was told of no error"
      assert_refused(code, error)
      assert_equal 2, error.scope
      assert @engine.finished?(client.session)
      refute @engine.receive(client.session, Wire.ping(id: 1), now: @now, wall: @wall)
    end

    def stats = @engine.stats

    def figures(queue) = @engine.queues(wall: @wall).find { |each| each[:name] == queue }
  end

  include Driving

  PARTS = []

  # Adds tests to the contract.
  def self.tests(&block) = PARTS << block

  def self.included(base)
    base.extend(SentenceTests)
    PARTS.each { |part| base.class_eval(&part) }
  end
end

require "contracts/broker/coming_back"
require "contracts/broker/greeting"
require "contracts/broker/identities"
require "contracts/broker/keeping"
require "contracts/broker/limits"
require "contracts/broker/names"
require "contracts/broker/numbering"
require "contracts/broker/passing_over"
require "contracts/broker/querying"
require "contracts/broker/receiving"
require "contracts/broker/repeating"
require "contracts/broker/segments"
require "contracts/broker/sending"
require "contracts/broker/stopping"
require "contracts/broker/time"
require "contracts/broker/total_queue"
