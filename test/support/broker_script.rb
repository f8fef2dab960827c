# frozen_string_literal: true

require "hikyaku/broker/client"
require "timeout"
require_relative "scripted_broker"

# For tests of a client against a broker that follows a script: what real brokers do seldom, and at the worst moment.
#
#     broker(->(peer) { serve(peer.welcome) })
#     client(identity: "ann").send_message("q", "x")
module BrokerScript
  Client = Hikyaku::Broker::Client
  Wire = Hikyaku::Broker::Wire
  Code = Wire::Code

  def teardown
    @client&.close(timeout: 2)
    @broker&.close
  end

  def broker(*script) = @broker = ScriptedBroker.new(*script)

  def client(**options) = @client = Client.open(@broker.address, **options)

  # Answers what a client says, and tells what it was; SEND and SEND_BATCH are the block's to answer, if there is one.
  def serve(peer, heard = nil)
    loop do
      frame = peer.read
      heard&.push(frame)
      case frame
      when Wire::Frames::Ping then peer.write(Wire.receipt(id: frame.id))
      when Wire::Frames::Subscribe then peer.write(Wire.ack(id: frame.id, request: 4))
      when Wire::Frames::Send, Wire::Frames::SendBatch then block_given? ? yield(frame) : peer.take(frame)
      end
    end
  end

  # The next frame of a type; numbers of deliveries begin at 0 in tests.
  def next_of(heard, type)
    Timeout.timeout(60) do
      loop do
        frame = heard.pop
        return frame if Wire::Frames.name_of(frame) == type
      end
    end
  end

  def number(delivery) = delivery - (1 << 36)

  def eventually(seconds = 60)
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
    until (found = yield)
      flunk "it did not come about" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
      sleep 0.005
    end
    found
  end
end
