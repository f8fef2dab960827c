# frozen_string_literal: true

require "test_helper"
require "open3"

# What hikyaku.js does with bytes and time, tried in Node.js: see the files *.test.mjs.
class NodeTest < Minitest::Test
  Dir[File.join(__dir__, "*.test.mjs")].sort.each do |file|
    test "#{File.basename(file)} passes" do
      node, = skip_unless_available("node")
      output, status = Open3.capture2e(node, "--test", "--test-reporter=tap", file)
      assert status.success?, output.lines.grep_v(/^\s*(?:ok|---|\.\.\.|duration_ms|type)/).join
      assert_operator output[/^# pass (\d+)$/, 1].to_i, :>, 0, output
    end
  end
end
