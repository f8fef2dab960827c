# frozen_string_literal: true

# The least that a fibre scheduler has to be (Fiber::SchedulerInterface): one thread, fibres that wait for sockets, time and
# each other. It counts how often a fibre waited without holding its thread.
class SmallScheduler
  attr_reader :waits

  def initialize
    @waits = 0
    @readable = {}
    @writable = {}
    @sleeping = {}
    @blocked = {}
    @unblocked = []
    @lock = Thread::Mutex.new
    @wake_reader, @wake_writer = IO.pipe
  end

  # Runs a block and all fibres that it begins, in a thread of its own.
  def self.run(&block)
    scheduler = new
    Thread.new do
      Fiber.set_scheduler(scheduler)
      Fiber.schedule(&block)
    end.join
    scheduler
  end

  def fiber(&block)
    Fiber.new(blocking: false, &block).tap(&:resume)
  end

  def block(_blocker, timeout = nil)
    @waits += 1
    fiber = Fiber.current
    @blocked[fiber] = true
    @sleeping[fiber] = now + timeout if timeout
    Fiber.yield
  ensure
    @blocked.delete(fiber)
    @sleeping.delete(fiber)
  end

  def unblock(_blocker, fiber)
    @lock.synchronize { @unblocked << fiber }
    @wake_writer.write_nonblock("!", exception: false)
  end

  def kernel_sleep(duration = nil) = block(:sleep, duration)

  def io_wait(io, events, timeout)
    @waits += 1
    fiber = Fiber.current
    @readable[fiber] = io if events.anybits?(IO::READABLE)
    @writable[fiber] = io if events.anybits?(IO::WRITABLE)
    @sleeping[fiber] = now + timeout if timeout
    Fiber.yield
    events
  ensure
    [@readable, @writable, @sleeping].each { |waiting| waiting.delete(fiber) }
  end

  def close = run

  def run
    until @blocked.empty? && @readable.empty? && @writable.empty? && @sleeping.empty?
      ready = select
      ready.uniq.each { |fiber| fiber.resume if fiber.alive? }
    end
  ensure
    @wake_reader.close
    @wake_writer.close
  end

  private

  def select
    soonest = @sleeping.values.min
    readable, writable = IO.select([@wake_reader, *@readable.values], @writable.values, [], soonest && [soonest - now, 0].max)
    readable ||= []
    @wake_reader.read_nonblock(1024, exception: false) if readable.delete(@wake_reader)
    woken = @lock.synchronize { @unblocked.slice!(0..) }
    fibers = @readable.select { |_, io| readable.include?(io) }.keys + @writable.select { |_, io| writable&.include?(io) }.keys
    time = now
    woken.select { |fiber| @blocked[fiber] } + fibers + @sleeping.select { |_, at| at <= time }.keys
  end

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
end
