# frozen_string_literal: true

require_relative "error"
require_relative "log/ring"
require_relative "log/generations"
require_relative "log/id_index"
require_relative "log/position_cipher"

module Hikyaku
  # What was published, in the order in which it was published. Whoever reads it holds a cursor: a
  # position that it has reached.
  module Log
  end
end
