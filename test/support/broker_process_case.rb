# frozen_string_literal: true

require_relative "broker_process"

# For tests of brokers in processes of their own, which are closed when the test ends.
module BrokerProcessCase
  Client = Hikyaku::Broker::Client
  Wire = Hikyaku::Broker::Wire

  def setup
    reason = BrokerProcess.missing
    skip reason if reason
    @closing = []
  end

  def teardown
    Array(@closing).reverse_each(&:close)
  end

  def ending(thing)
    @closing << thing
    thing
  end

  def start(*flags, **options) = ending(BrokerProcess.new(*flags, **options))

  # A hub and a broker in one process, which keep what they have.
  def serve(*flags, **options) = start("--listen", "127.0.0.1:0", *flags, command: %w[serve --dev --broker], **options)

  # See {BrokerProcess.send_patiently}.
  def send_patiently(...) = BrokerProcess.send_patiently(...)

  def eventually(what, seconds = 60)
    deadline = now + seconds
    until (value = yield)
      flunk("#{what} did not come in #{seconds} s") if now > deadline
      sleep 0.02
    end
    value
  end

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
end
