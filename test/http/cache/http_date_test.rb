# frozen_string_literal: true

require "test_helper"
require "hikyaku/http/cache/http_date"

# RFC 9110, section 5.6.7.
class HTTPCacheHttpDateTest < Minitest::Test
  HttpDate = Hikyaku::HTTP::Cache::HttpDate
  NOW = Time.utc(2026, 5, 6, 7, 8, 9).to_f
  private_constant :HttpDate, :NOW

  DATES = {
    "Sun, 06 Nov 1994 08:49:37 GMT" => [1994, 11, 6, 8, 49, 37], "Sunday, 06-Nov-94 08:49:37 GMT" => [1994, 11, 6, 8, 49, 37],
    "Sun Nov  6 08:49:37 1994" => [1994, 11, 6, 8, 49, 37], "Sun Nov 16 08:49:37 1994" => [1994, 11, 16, 8, 49, 37],
    "sUN, 06 nOV 1994 08:49:37 gmt" => [1994, 11, 6, 8, 49, 37], "Thu, 29 Feb 2024 00:00:00 GMT" => [2024, 2, 29], "Sat, 31 Dec 2016 23:59:60 GMT" => [2017],
    "Mon, 01 Jan 9999 00:00:00 GMT" => [9999], "Thu, 01 Jan 1970 00:00:00 GMT" => [1970], "Fri, 01 Jan 1960 00:00:00 GMT" => [1960],
    # two digits: the century before, where it would be more than fifty years ahead
    "Friday, 01-Jan-26 00:00:00 GMT" => [2026], "Friday, 01-Jan-75 00:00:00 GMT" => [2075], "Friday, 01-Jan-77 00:00:00 GMT" => [1977],
    "Friday, 29-Feb-00 00:00:00 GMT" => [2000, 2, 29]
  }.freeze

  NONE = [
    "", "0", "-1", "now", "Sun, 06 Nov 1994 08:49:37", "Sun, 06 Nov 1994 08:49:37 UTC", "Sun, 06 Nov 1994 08:49:37 +0000", "Sun, 06 Nov 94 08:49:37 GMT",
    "Sun 06 Nov 1994 08:49:37 GMT", "Sun, 6 Nov 1994 08:49:37 GMT", "Sun, 06  Nov 1994 08:49:37 GMT", "Sun, 06-Nov-1994 08:49:37 GMT",
    "Sun, 06 Nov 1994 8:49:37 GMT", "Sun, 06 Nov 1994 08.49.37 GMT", "Sun, 06 Nov 1994 24:00:00 GMT", "Sun, 06 Nov 1994 08:60:37 GMT",
    "Sun, 06 Nov 1994 08:49:61 GMT", "Sun, 00 Nov 1994 08:49:37 GMT", "Sun, 31 Nov 1994 08:49:37 GMT", "Wed, 29 Feb 2023 00:00:00 GMT",
    "Sun, 32 Nov 1994 08:49:37 GMT", "Sun, 06 Nob 1994 08:49:37 GMT", "Sunday, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 11994 08:49:37 GMT",
    " Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 GMT ", "Sun, 06 Nov 1994 08:49:37 GMT\n", "Sun, 06 Nov 1994 08:49:37 GMT\0",
    "Sun Nov 6 08:49:37 1994", "Sun Nov  6 08:49:37 94", "\xFF\xFE", "Sun, #{"0" * 100_000}"
  ].freeze
  private_constant :DATES, :NONE

  test "all three formats are read" do
    DATES.each { |text, moment| assert_equal Time.utc(*moment).to_i, HttpDate.parse(text.b, now: NOW), text }
  end

  test "what is no date is none" do
    NONE.each { |text| assert_nil HttpDate.parse(text.b, now: NOW), text.b[0, 60].inspect }
    assert_nil HttpDate.parse(nil, now: NOW)
  end

  test "what is written can be read" do
    [0, 951_782_399, NOW.to_i, 4_102_444_800].each { |seconds| assert_equal seconds, HttpDate.parse(HttpDate.write(seconds), now: NOW) }
    assert_equal "Wed, 06 May 2026 07:08:09 GMT", HttpDate.write(NOW + 0.9)
  end
end
