# frozen_string_literal: true

require "test_helper"
require "hikyaku/http/client"
require "support/misbehaving"

class HTTPClientOriginsTest < Minitest::Test
  Client = Hikyaku::HTTP::Client
  private_constant :Client

  def setup
    @driver = Struct.new(:servers) { def wake = nil }.new([])
    @servers = Client::Origins.new(Client::Settings.new(proxy: nil), @driver, Client::Memory.new(nil), clock: -> { 1.7e9 }, most: 3)
  end

  test "the one that was idle for longest makes room" do
    one, two, three = Array.new(3) { |i| server(i) }
    two.enqueue(Client::Exchange.new(Hikyaku::HTTP::Request.new("GET", "http://1.example/"), nil, number: 1))
    [one, three, one].each_with_index { |server, i| used(server, i + 1.0) }
    server(3)
    assert_equal [[one, two], 3, 3], [@servers.to_a.first(2), @servers.size, @driver.servers.size]
    refute_same three, server(2), "it begins anew"
    assert_same two, server(1)
  end

  test "while none is idle none goes" do
    all = Array.new(3) { |i| server(i).tap { |one| one.enqueue(Client::Exchange.new(Hikyaku::HTTP::Request.new("GET", "http://#{i}.example/"), nil, number: i)) } }
    server(3)
    assert_equal all, @servers.to_a.first(3)
  end

  private

  def server(index) = @servers[Hikyaku::HTTP::Address.parse("http://#{index}.example/").origin]

  # Something was to be done there at that time.
  def used(server, now)
    server.define_singleton_method(:idle?) { false }
    server.define_singleton_method(:ask) { |_| }
    server.tend(now)
    server.singleton_class.remove_method(:idle?, :ask)
  end
end
