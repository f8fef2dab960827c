# frozen_string_literal: true

require "test_helper"

class MessageTest < ActiveSupport::TestCase
  setup do
    @conversation = Conversation.create!(title: "Weather")
    @user = User.create!(name: "Ada")
  end

  test "a message is appended to its conversation" do
    stream, = capture_turbo_stream_broadcasts(@conversation) { perform_enqueued_jobs { say("Rain again") } }
    assert_equal %w[append messages], [stream["action"], stream["target"]]
    assert_includes stream.to_html, "Rain again"
  end

  test "the list of conversations is refreshed" do
    assert_turbo_stream_broadcasts("conversations", count: 1) { perform_enqueued_jobs { say("Rain again") } }
  end

  test "what is rolled back is not broadcast" do
    assert_no_turbo_stream_broadcasts(@conversation) do
      perform_enqueued_jobs do
        Message.transaction do
          say("Rain again")
          raise ActiveRecord::Rollback
        end
      end
    end
  end

  private

  def say(body) = @conversation.messages.create!(user: @user, body: body)
end
