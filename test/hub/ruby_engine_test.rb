# frozen_string_literal: true

require "test_helper"
require "contracts/engine_contract"

class RubyEngineTest < Minitest::Test
  include EngineContract

  def new_engine(**options) = Hikyaku::Hub::RubyEngine.new(heartbeat: nil, **options)
end
