# frozen_string_literal: true

module Hikyaku
  module HTTP
    class Cache
      # The date formats of HTTP: RFC 9110, section 5.6.7. Caches accept names in either case, and no time zone but GMT (RFC 9111, section 4.2).
      module HttpDate
        MONTHS = %w[jan feb mar apr may jun jul aug sep oct nov dec].freeze
        MONTH = "(?<month>#{MONTHS.join("|")})"
        DAY = "(?<day>0[1-9]|[12]\\d|3[01])"
        TIME = "(?<hour>[01]\\d|2[0-3]):(?<minute>[0-5]\\d):(?<second>[0-5]\\d|60)"
        FORMATS = [
          /\A(?:mon|tue|wed|thu|fri|sat|sun), #{DAY} #{MONTH} (?<year>\d{4}) #{TIME} gmt\z/i,
          /\A(?:mon|tues|wednes|thurs|fri|satur|sun)day, #{DAY}-#{MONTH}-(?<year>\d\d) #{TIME} gmt\z/i,
          /\A(?:mon|tue|wed|thu|fri|sat|sun) #{MONTH} (?<day>[ 0][1-9]|[12]\d|3[01]) #{TIME} (?<year>\d{4})\z/i
        ].freeze
        MAX_BYTES = 40
        FIFTY_YEARS = 50 * 365.25 * 86_400 # seconds
        private_constant :MONTHS, :MONTH, :DAY, :TIME, :FORMATS, :MAX_BYTES, :FIFTY_YEARS

        module_function

        def parse(value, now:)
          return if value.nil? || value.bytesize > MAX_BYTES
          match = FORMATS.filter_map { |format| format.match(value) }.first or return
          return seconds(match, match[:year].to_i) if match[:year].size == 4
          century = Time.at(now).utc.year / 100 * 100
          date = seconds(match, century + match[:year].to_i)
          # A year of two digits that is more than fifty years ahead belongs to the past century.
          (date && date - now > FIFTY_YEARS) ? seconds(match, century - 100 + match[:year].to_i) : date
        end

        def write(now) = Time.at(now).utc.strftime("%a, %d %b %Y %H:%M:%S GMT").b.freeze

        def seconds(match, year)
          day, month = match[:day].to_i, MONTHS.index(match[:month].downcase) + 1
          return unless Time.utc(year, month, day).day == day # Time.utc turns February 31 into March 3
          Time.utc(year, month, day, match[:hour].to_i, match[:minute].to_i, match[:second].to_i).to_i
        end
        private_class_method :seconds
      end
    end
  end
end
