# frozen_string_literal: true

require "test_helper"
require "contracts/engine_contract"
require "contracts/engine/keeping"

class RubyEngineTest < Minitest::Test
  include EngineContract
  include KeepingContract

  def new_engine(**options) = Hikyaku::Hub::RubyEngine.new(**options)
end

# The same, driven step by step: `next_ready`, `take`, `wrote`.
class RubyEngineStepsTest < Minitest::Test
  include EngineContract

  class SteppedEngine < Hikyaku::Hub::RubyEngine
    def serve(...) = Hikyaku::Hub::Engine.instance_method(:serve).bind_call(self, ...)
  end

  def new_engine(**options) = SteppedEngine.new(**options)
end
