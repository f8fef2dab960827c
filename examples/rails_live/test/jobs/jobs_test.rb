# frozen_string_literal: true

require "test_helper"

class JobsTest < ActiveSupport::TestCase
  setup { @user = User.create!(name: "Ada") }

  test "an export says how far it is" do
    export = @user.exports.create!(total: 3)
    streams = capture_turbo_stream_broadcasts([@user, :exports]) { ExportJob.perform_now(export, pause: 0) }
    assert_equal %w[replace] * 3, streams.map { |stream| stream["action"] }
    assert_includes streams.last.to_html, "done"
  end

  test "an answer comes token by token, then as a whole" do
    answer = @user.answers.create!(question: "Where is my letter?")
    *tokens, whole = capture_turbo_stream_broadcasts([@user, :answers]) { AnswerJob.perform_now(answer, pause: 0) }
    assert_equal answer.tokens.join, tokens.map { |stream| stream.at("template").text.chomp }.join
    assert_equal tokens.size, tokens.map { |stream| stream.at("span")["id"] }.uniq.size
    assert_equal ["replace", answer.tokens.join], [whole["action"], whole.at("p").text.chomp]
  end
end
