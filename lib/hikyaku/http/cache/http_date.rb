# frozen_string_literal: true

module Hikyaku
  module HTTP
    class Cache
      # Dates as HTTP writes them: RFC 9110, section 5.6.7. Letters in either case, GMT and no other zone, as RFC 9111, section 4.2, has it for caches.
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
        FAR = 50 * 365.25 * 86_400 # seconds
        private_constant :MONTHS, :MONTH, :DAY, :TIME, :FORMATS, :MAX_BYTES, :FAR

        module_function

        def parse(value, now:)
          return if value.nil? || value.bytesize > MAX_BYTES
          match = FORMATS.filter_map { |format| format.match(value) }.first or return
          return seconds(match, match[:year].to_i) if match[:year].size == 4
          century = Time.at(now).utc.year / 100 * 100
          date = seconds(match, century + match[:year].to_i)
          # More than fifty years ahead means the century before.
          (date && date - now > FAR) ? seconds(match, century - 100 + match[:year].to_i) : date
        end

        def write(now) = Time.at(now).utc.strftime("%a, %d %b %Y %H:%M:%S GMT").b.freeze

        def seconds(match, year)
          day, month = match[:day].to_i, MONTHS.index(match[:month].downcase) + 1
          return unless Time.utc(year, month, day).day == day # the 31st of February is in March
          Time.utc(year, month, day, match[:hour].to_i, match[:minute].to_i, match[:second].to_i).to_i
        end
        private_class_method :seconds
      end
    end
  end
end
