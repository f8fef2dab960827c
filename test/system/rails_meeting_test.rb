# frozen_string_literal: true

require "test_helper"
require "support/meeting_application"

# The example with pages that send, in two browsers.
class RailsMeetingTest < Minitest::Test
  include MeetingApplication

  class << self
    def server = (@folder, @server = MeetingApplication.serve unless @server).then { @server }

    def finish
      @server&.stop
      @folder&.remove
    end
  end
  Minitest.after_run { finish }
end
