# frozen_string_literal: true

require "support/native_hub"
require "support/protocol_smoke"
require "support/protocol_test"

# The whole protocol once, over a process on the engine in C.
class Protocol::NativeSmokeTest < Protocol::Test
  include ProtocolSmoke

  # What the tests of the protocol ask of their server.
  Served = Struct.new(:process, :client) do
    def path = NativeHub::PATH

    def stop = process.stop
  end
  private_constant :Served

  test "publishing, subscribing, private updates, coming back, the subscription API, discovery, refusals, disconnecting" do
    skip Sanitizers.missing if Sanitizers.wanted? && Sanitizers.missing
    hub = NativeHub.new("--subscriptions")
    @own = Served.new(hub, hub.client)
    2.times do # the second time much is remembered
      smoke
      @prefix = nil
    end
    assert_operator hub.metrics["grant_hits_total"], :>, 0
    assert_equal 0, hub.stop.exitstatus
    assert_empty hub.complaints
  end
end
