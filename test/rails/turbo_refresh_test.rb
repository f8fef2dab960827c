# frozen_string_literal: true

require "test_helper"
require "support/turbo_application"

# Pages that are told to fetch themselves again: not more often than needed, and not by whom they were changed.
class TurboRefreshTest < Minitest::Test
  include TurboApplication

  def setup
    super
    Turbo::ThreadDebouncer.debouncer_class = Turbo::Debouncer
  end

  test "refreshes that follow each other are one" do
    stream = follow(sign("x"))
    5.times { Turbo::StreamsChannel.broadcast_refresh_later_to("x") }
    settle
    assert_equal %w[refresh remove], [received(stream), received(stream)].map { |element| element["action"] }
  end

  test "records that change one after the other make one refresh of their board" do
    stream = follow(sign(@board))
    RefreshingBoard.create!(body: "a", board: @board).update!(body: "b")
    settle(@board)
    assert_equal %w[refresh remove], [received(stream), received(stream)].map { |element| element["action"] }
  end

  test "those of different requests are not, since each is suppressed in another page" do
    stream = follow(sign("x"))
    2.times { %w[r1 r2].each { |id| Turbo.with_request_id(id) { Turbo::StreamsChannel.broadcast_refresh_later_to("x") } } }
    assert_equal %w[r1 r2], [received(stream), received(stream)].map { |element| element["request-id"] }.sort
  end

  test "a refresh carries the id of the request that it comes from" do
    stream = follow(sign(@board))
    assert_equal 204, request("POST", "/boards/#{@board.id}/messages?body=x", x_turbo_request_id: "r-7").status
    assert_equal "r-7", received(stream)["request-id"]
    Turbo.with_request_id("r-8") { Turbo::StreamsChannel.broadcast_refresh_to(@board) }
    assert_equal "r-8", received(stream)["request-id"]
    Turbo::StreamsChannel.broadcast_refresh_to(@board)
    assert_nil received(stream)["request-id"]
  end

  test "it is the id of the request in which it was asked for, also if the transaction ends after that" do
    stream = follow(sign("x"))
    Message.transaction do
      Turbo.with_request_id("r-9") { Turbo::StreamsChannel.broadcast_refresh_later_to("x") }
    end
    assert_equal "r-9", received(stream)["request-id"]
  end

  test "how a page is to change goes with it (morphing)" do
    stream = follow(sign("x"))
    Turbo::StreamsChannel.broadcast_refresh_to("x", method: :morph, scroll: :preserve)
    Turbo::StreamsChannel.broadcast_refresh_later_to("x", method: :morph)
    element = received(stream).to_h
    assert_equal %w[refresh morph preserve], element.values_at("action", "method", "scroll")
    assert_equal %w[refresh morph], received(stream).to_h.values_at("action", "method")
  end

  private

  # What was put off has been sent, and something comes after it.
  def settle(*streamables)
    streamables = ["x"] if streamables.empty?
    Turbo::StreamsChannel.refresh_debouncer_for(*streamables, request_id: nil).wait
    Turbo::StreamsChannel.broadcast_remove_to(*streamables, target: "last")
  end
end
