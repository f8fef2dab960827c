# frozen_string_literal: true

require "test_helper"
require "hikyaku/web/subscription_reader"
require "hikyaku/web/request"

class WebSubscriptionParametersTest < Minitest::Test
  SubscriptionParameters = Hikyaku::Web::SubscriptionParameters

  def setup
    @read = []
  end

  def reader(**options)
    SubscriptionParameters::Reader.new(**options) do |parameters|
      @read << parameters
      SubscriptionParameters.new(parameters.select { |pair| pair.first == "match" }, parameters.assoc("last_event_id")&.last)
    end
  end

  def request(query) = Hikyaku::Web::Request.new({"QUERY_STRING" => query})

  test "the same query component is read once, another by itself" do
    reader = self.reader
    first = reader.read(request("match=/a"))
    assert_same first, reader.read(request("match=/a"))
    refute_equal first.deciding, reader.read(request("match=/A")).deciding
    assert_equal [[%w[match /a]], [%w[match /A]]], @read
    assert_predicate first.deciding, :frozen?
  end

  test "what the server does with its text afterwards changes nothing" do
    reader = self.reader
    query = +"match=/a"
    reader.read(request(query))
    query << "/b"
    assert_equal [%w[match /a/b]], reader.read(request(query)).deciding
    assert_equal [%w[match /a]], reader.read(request("match=/a")).deciding
  end

  test "one that names an event is not remembered, an empty one neither" do
    reader = self.reader
    2.times { assert_equal "x", reader.read(request("match=/a&last_event_id=x")).cursor }
    2.times { assert_equal "", reader.read(request("match=/a&last_event_id=")).cursor }
    assert_equal [4, 0], [@read.size, reader.size]
  end

  test "no more is remembered than its bytes allow, and who comes often stays longest" do
    reader = self.reader(max_bytes: 20_000)
    500.times { |n| reader.read(request("match=/#{n}")) }
    assert_operator reader.size, :<=, 32
    assert_operator reader.size, :>, 10
    before = @read.size
    reader.read(request("match=/499"))
    assert_equal before, @read.size
    reader.read(request("match=/#{"x" * 10_000}"))
    assert_operator reader.size, :<=, 32
  end

  test "its texts are not shown" do
    reader = self.reader
    reader.read(request("match=/hidden"))
    refute_match(/hidden/, reader.inspect)
  end
end
