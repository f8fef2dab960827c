# frozen_string_literal: true

require "test_helper"
require "support/meeting_application"
require "support/snippets"

# The code of docs/guides/both-ways.md works in an application: with it in place of its own files the example passes the same tests.
class BothWaysGuideTest < Minitest::Test
  include MeetingApplication

  GUIDE = Snippets.files("docs/guides/both-ways.md").freeze

  class << self
    def server = (@folder, @server = MeetingApplication.serve(GUIDE) unless @server).then { @server }

    def finish
      @server&.stop
      @folder&.remove
    end
  end
  Minitest.after_run { finish }

  test "the guide replaces files of the example" do
    assert_equal 7, GUIDE.size
    assert_empty GUIDE.keys - Dir["app/**/*", base: MeetingApplication::EXAMPLE]
  end
end
