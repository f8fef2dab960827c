# frozen_string_literal: true

require "date"
require "time"

module Hikyaku
  module Codec
    module Plain
      # Moments: Time, DateTime, and what acts like them, as Active Support's TimeWithZone does. A Date is none.
      module Moments
        # 1970-01-01T00:00:00Z in days since the epoch of astronomers.
        EPOCH = 4_881_175r / 2
        DAY = 86_400
        # Of seconds: as many as Active Support writes.
        DIGITS = 3
        private_constant :EPOCH, :DAY, :DIGITS

        class << self
          def moment?(value) = value.is_a?(::Time) || value.is_a?(::DateTime) || acts?(value)

          def time(moment)
            return moment if moment.instance_of?(::Time)
            return ::Time.at((moment.ajd - EPOCH) * DAY).utc if moment.is_a?(::DateTime)
            ::Time.at(moment.to_r).utc
          end

          def text(moment) = moment.respond_to?(:as_json) ? moment.as_json : moment.xmlschema(DIGITS)

          private

          # Some answer to any question by method_missing, as types in Rails do (`Mime[:json].html?`): they have no such method.
          def acts?(value) = value.respond_to?(:acts_like_time?) && value.class.method_defined?(:acts_like_time?) && value.acts_like_time?
        end
      end
    end
  end
end
