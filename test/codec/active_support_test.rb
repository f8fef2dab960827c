# frozen_string_literal: true

require "test_helper"
require "open3"

# In a process of its own: Active Support changes Ruby's classes.
class CodecActiveSupportTest < Minitest::Test
  SCRIPT = <<~RUBY
    require "active_support/all"
    require "active_support/time"
    require "hikyaku/codec"
    require "support/generated_objects"
    Time.zone = "Tokyo"
    Row = Struct.new(:id, :at)
    class User
      def initialize = (@name, @at = "Ada", Time.at(1, in: "UTC"))
    end
    class Chosen
      def as_json(options = nil) = {id: 1, at: Time.at(0, in: "UTC"), "price" => BigDecimal("1.50")}
    end
    class Special < Hash
      def as_json(*) = {"special" => size}
    end
    moment = Time.zone.at(1_700_000_000, 123_456_789, :nsec)
    object = {
      moment: moment, :time => Time.at(0, 5_000_000, :nsec, in: "+02:00"), "date_time" => DateTime.new(2024, 1, 2, 3, 4, 5.678r), date: Date.new(2024, 2, 29),
      decimal: BigDecimal("12.340"), endless: [Float::NAN, Float::INFINITY, BigDecimal("NaN"), 1.5], set: Set[1, :b], row: Row.new(1, moment), user: User.new, chosen: [Chosen.new],
      special: Special[1, 2], indifferent: {a: [moment]}.with_indifferent_access, ordered: ActiveSupport::OrderedHash[1, 2], safe: "<b>".html_safe, range: 1..3, pattern: /a+/,
      duration: 90.minutes, rational: 1/3r, uri: URI("http://a/b"), path: Pathname("/a"), symbol: :ü, big: 2**70, error: ArgumentError.new("no"), inquiry: "a".inquiry, 3 => nil
    }
    codec = Hikyaku::Codec
    rails = JSON.parse(ActiveSupport::JSON.encode(object.as_json))
    report = {}
    json = codec[:json].load(codec[:json].dump(object))
    report[:json] = rails.reject { |key, value| value == json[key] }.keys + (json.keys - rails.keys)
    packed = codec[:msgpack].load(codec[:msgpack].dump(object))
    report[:msgpack] = rails.reject { |key, value| value == packed[key] }.keys + (packed.keys - rails.keys)
    report[:moments] = [packed["moment"] == moment, packed["moment"].nsec, packed["time"].class, packed["date_time"] == object["date_time"], packed["row"]["at"].class, packed["indifferent"]]
    report[:big] = packed["big"]
    generator = GeneratedObjects.new(Random.new(8), kinds: GeneratedObjects::ALL - [:wide])
    report[:generated] = 60.times.count do
      made = {"made" => generator.next}
      codec[:json].load(codec[:json].dump(made)) == JSON.parse(ActiveSupport::JSON.encode(made.as_json))
    end
    p report
  RUBY

  test "with Active Support, JSON is what render json: gives, and MessagePack the same with moments of its own" do
    output, status = Open3.capture2e({"TZ" => "UTC"}, RbConfig.ruby, "-Ilib", "-Itest", "-e", SCRIPT)
    assert status.success?, output
    report = eval(output.lines.last.gsub(/(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\.?(\d*) UTC/, '"\1 \2"')) # standard:disable Security/Eval
    assert_empty report[:json]
    assert_equal %w[moment time date_time chosen indifferent big], report[:msgpack]
    assert_equal [true, 123_456_789, Time, true, String, {"a" => ["2023-11-14 22:13:20 123456789"]}], report[:moments]
    assert_equal (2**70).to_s, report[:big]
    assert_equal 60, report[:generated]
  end
end
