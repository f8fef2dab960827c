# frozen_string_literal: true

module Hikyaku
  VERSION = "0.1.0"
end
