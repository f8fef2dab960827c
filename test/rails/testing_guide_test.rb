# frozen_string_literal: true

require "test_helper"
require "support/rails_server"
require "support/snippets"

# The tests of examples/rails_live pass, and beside them those of docs/guides/testing.md.
class TestingGuideTest < Minitest::Test
  # Those with a browser are test/system/testing_guide_test.rb's.
  GUIDE = Snippets.files("docs/guides/testing.md").select { |path, _| path.start_with?("test/") && !path.start_with?("test/system/") }.freeze

  test "the application's tests pass, and the guide's" do
    assert_equal 3, GUIDE.size
    folder = RailsServer::Folder.new(GUIDE, example: File.join(RailsServer::ROOT, "examples/rails_live"))
    # With Minitest's plugins, which these tests themselves do without: from Rails 8.1 on one of them loads the application's tests.
    output, status = folder.run("bin/rails", "db:test:prepare", "test", RAILS_ENV: "test", MT_NO_PLUGINS: nil)
    assert status.success?, output
    written = Dir["#{folder.path}/test/**/*_test.rb"].sum { |file| File.read(file).scan(/^  test "/).size }
    assert_match(/^#{written} runs, \d+ assertions, 0 failures, 0 errors, 0 skips$/, output)
  ensure
    folder&.remove
  end
end
