# frozen_string_literal: true

require "test_helper"
require "hikyaku/hub"

class GapTest < Minitest::Test
  VECTORS = File.expand_path("../vectors/gap_events.txt", __dir__)

  test "gap events have the bytes that the vectors say" do
    lines = File.readlines(VECTORS, chomp: true).reject { |line| line.start_with?("#") }
    refute_empty lines
    lines.each do |line|
      after, event, *named = line.split(/ /, -1)
      matchers = named.map do |matcher|
        type, pattern = matcher.split("=")
        Hikyaku::Hub::Matcher.build(type: type, pattern: [pattern].pack("H*"), base: "https://hub.example.com/.well-known/mercure")
      end
      reason = matchers.empty? ? "unknown" : "overrun"
      made = Hikyaku::Hub::Gap.event(id: "#K7gNU3sdo-O", after: [after].pack("H*"), reason: reason, matchers: matchers)
      assert_equal event, made.unpack1("H*"), line
    end
  end
end
