# frozen_string_literal: true

require "hikyaku/broker"

# A broker's engine that does what a test says, and remembers what its driver did. Each byte `e` comes back as it is, `x` breaks, `T` breaks when output is taken, `F` fails the storage, `M` finds no memory,
# `q` ends the session, `.` makes it full until the next commit, `s` asks for a sync and comes back when that is done.
class ScriptedEngine
  Session = Struct.new(:serial, :out, :blocked, :full, :ended, :ready, :waits, :taken, :broken) do
    def hash = object_id
    def eql?(other) = equal?(other)
  end

  attr_reader :happened, :sessions, :hellos, :in_sync, :most

  def initialize(most: 10)
    @happened = Thread::Queue.new
    @sessions = []
    @hellos = []
    @most = most
    @serial = 0
    @in_sync = Thread::Queue.new
    @synced = Thread::Queue.new
  end

  def events
    list = []
    list << @happened.pop until @happened.empty?
    list
  end

  def connect(now:, address: "")
    raise Hikyaku::Broker::TooManyConnections, "there are #{@most} clients, and no room for more" if @sessions.size >= @most
    @happened << [:connect, address]
    Session.new(@serial += 1, +"", false, false, false, false, 0, 0, false).tap { |session| @sessions << session }
  end

  def receive(session, bytes, now:, wall:)
    bytes.each_char do |letter|
      case letter
      when "x" then raise "a mistake of the engine"
      when "F" then raise Hikyaku::Broker::StorageFailed, "cannot write to journal-1.seg: no such device"
      when "M" then raise NoMemoryError, "failed to allocate memory"
      when "T"
        session.broken = true
        say(session, "T")
      when "q" then session.ended = true
      when "." then session.full = true
      when "b" then say(session, "B" * 1_000_000)
      when "h" then @hellos << Hikyaku::Broker::AuthRequest.new(serial: session.serial, identity: "", credentials: "", kind: 0)
      when "s"
        @wanted = true
        session.waits += 1
      else say(session, letter)
      end
    end
    !session.ended
  end

  def disconnect(session, now:, wall:)
    @sessions.delete(session)
    @happened << [:disconnect, session.serial]
  end

  def full?(session) = session.full

  def finished?(session) = session.ended && session.out.empty?

  def next_ready = @sessions.find { |session| session.ready && !session.blocked }&.tap { |session| session.ready = false }

  def take(session, most)
    raise "a mistake of the engine" if session.broken
    session.out.byteslice(0, most).tap { |bytes| session.taken = bytes.bytesize }
  end

  def wrote(session, count)
    session.out = session.out.byteslice(count..)
    session.blocked = count < session.taken
    session.ready = !session.out.empty?
  end

  def writable(session)
    session.blocked = false
  end

  def next_auth_request = @hellos.shift

  def permit(serial, permissions, now:, wall:, until_ms: nil)
    @happened << [:permit, serial, permissions.size, until_ms]
    say(@sessions.find { |session| session.serial == serial }, "Y")
  end

  def refuse(serial, sentence)
    @happened << [:refuse, serial, sentence]
    say(@sessions.find { |session| session.serial == serial }, "N")
  end

  def tick(now:, wall:)
  end

  def next_tick = nil

  def commit(wall:)
    @happened << [:commit] if @commits
    until @synced.empty?
      @synced.pop
      @sessions.each { |session| say(session, "S" * session.waits) && session.waits = 0 }
    end
    @sessions.each { |session| session.full = false if session.full && session.out.empty? }
  end

  def sync_wanted? = @wanted.tap { @wanted = false }

  # Takes as long as the test likes.
  def sync
    @happened << [:sync]
    @in_sync.pop
    @synced << true
  end

  def space_wanted? = false

  def drain(retry_after)
    @happened << [:drain, retry_after]
    @draining = true
  end

  def drained? = @sessions.empty?

  def close(now:, wall:)
    @happened << [:close]
  end

  def abort
    @happened << [:abort]
  end

  def stats = {sessions: @sessions.size}

  def queues(wall:) = []

  private

  def say(session, text)
    session.out << text
    session.ready = true unless text.empty?
  end
end
