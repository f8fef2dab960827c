# frozen_string_literal: true

require "test_helper"
require "contracts/driver_contract"
require "hikyaku/server/reactor"

class ReactorTest < Minitest::Test
  include DriverContract

  def engine = Hikyaku::Hub::RubyEngine

  def new_reactor(hub, **options) = Hikyaku::Server::Reactor.new(hub, **options)
end
