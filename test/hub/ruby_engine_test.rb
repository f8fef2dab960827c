# frozen_string_literal: true

require "test_helper"
require "contracts/engine_contract"
require "contracts/engine/persistence"

class RubyEngineTest < Minitest::Test
  include EngineContract
  include PersistenceContract

  def new_engine(**options) = Hikyaku::Hub::RubyEngine.new(**options)

  test "it does not compress streams, and says where to find an engine that does" do
    %i[events message_pack].each do |format|
      refute @engine.offers?(format, :gzip)
      error = assert_raises(Hikyaku::UnsupportedStreamFormat) { @engine.subscribe(grant(exact("/a")), now: @now, format: format, coding: :gzip) }
      assert_match(/does not compress.*engine in C/, error.message)
    end
  end
end

# The same, driven step by step: `next_ready`, `take`, `wrote`.
class RubyEngineStepsTest < Minitest::Test
  include EngineContract

  class SteppedEngine < Hikyaku::Hub::RubyEngine
    def serve(...) = Hikyaku::Hub::Engine.instance_method(:serve).bind_call(self, ...)
  end

  def new_engine(**options) = SteppedEngine.new(**options)
end
