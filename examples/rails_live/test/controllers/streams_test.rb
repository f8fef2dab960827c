# frozen_string_literal: true

require "test_helper"

# Who may follow what: the question that a page asks when it connects.
class StreamsTest < ActionDispatch::IntegrationTest
  setup do
    Stock.create!(symbol: "NIHON", name: "Nihonbashi Couriers", price: 100, opening: 100)
    @conversation = Conversation.create!(title: "Weather")
  end

  test "the ticker is for everybody" do
    get root_path
    assert_equal({}, refused(followed))
  end

  test "a conversation is for whoever is signed in, until they leave" do
    post session_path, params: {name: "Ada"}
    get conversation_path(@conversation)
    names = followed
    assert_equal({}, refused(names))
    delete session_path
    assert_equal({names.first => "forbidden"}, refused(names))
  end

  test "what is somebody's own is nobody else's" do
    post session_path, params: {name: "Ada"}
    get exports_path
    names = followed
    post session_path, params: {name: "Eve"}
    assert_equal({names.first => "forbidden"}, refused(names))
  end

  private

  def followed = css_select("hikyaku-stream-source").map { |element| element["signed-stream-name"] }

  def refused(names)
    post hikyaku_streams_path, params: {names: names}, as: :json
    assert_response :success
    response.parsed_body["refused"]
  end
end
