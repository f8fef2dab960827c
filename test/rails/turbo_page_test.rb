# frozen_string_literal: true

require "test_helper"
require "support/rails_settings"
require "support/turbo_application"

# What a page carries of its streams, and what it has when it connects with that.
class TurboPageTest < Minitest::Test
  include RailsSettings
  include TurboApplication

  HOURS = 3600

  test "the element says which stream, from where, and where its token is to be had" do
    element = page("/boards/#{@board.id}")
    assert_equal %w[cursor signed-stream-name src], element.keys.sort
    assert_equal ["/hikyaku/streams", Hikyaku.hub.cursor(Hikyaku::Hub::Grant.new)], element.values_at("src", "cursor")
    assert_equal @board.to_gid_param, Turbo::StreamsChannel.verified_stream_name(element["signed-stream-name"])
  end

  test "attributes of the element are kept, but for turbo-rails' own class, which follows what it is given" do
    [nil, "", Turbo::StreamsChannel, "Turbo::StreamsChannel"].each do |channel|
      BoardsController.attributes = {channel: channel, class: "hidden", id: "stream"}
      element = page("/boards/#{@board.id}")
      assert_equal ["hidden", "stream", nil], element.values_at("class", "id", "channel")
      assert_equal @board.to_gid_param, Turbo::StreamsChannel.verified_stream_name(element["signed-stream-name"])
    end
  end

  # What a class is asked: test/rails/turbo_cable_class_test.rb.
  test "a class that cannot be asked is an error" do
    error = assert_raises(Hikyaku::ConfigError) { view.turbo_stream_from("room", channel: "RoomChannel") }
    assert_match(/channel: RoomChannel, and .*#{"no Action Cable" unless defined?(ActionCable)}.*leave channel: out/, error.message)
  end

  test "authorize gets the data- attributes, by the names that Action Cable's element gives them" do
    given = nil
    Hikyaku::Turbo.authorize { |_, _, params| given = params }
    BoardsController.attributes = {"data-d" => "<&\">", :data => {section: "x", room_name: 1, "long-name-of-it": true, list: [1], none: nil, a_b_c: "", "v-2": 2}}
    element = page("/boards/#{@board.id}")
    knock([element["signed-stream-name"]])
    assert_equal({"d" => "<&\">", "section" => "x", "room_name" => "1", "long_name_of_it" => "true", "list" => "[1]", "a_bc" => "", "v-2" => "2"}, given.to_hash)
    assert_equal "x", given[:section]
    knock([sign("x")])
    assert_equal({}, given)
  end

  test "an element in a cached fragment keeps its cursor and its name, as the guide warns" do
    before = ActionController::Base.perform_caching, ActionController::Base.cache_store
    ActionController::Base.perform_caching, ActionController::Base.cache_store = true, :memory_store
    rendered = -> { ApplicationController.render(inline: %(<% cache "x" do %><%= turbo_stream_from "x" %><% end %><%= turbo_stream_from "x" %>)) }
    first = elements(rendered.call)
    Hikyaku.publish("/x", "1")
    second = elements(rendered.call)
    assert_equal first[0], second[0]
    refute_equal second[0]["cursor"], second[1]["cursor"]
  ensure
    ActionController::Base.perform_caching, ActionController::Base.cache_store = before
  end

  test "without anything to name the stream after there is no element (turbo_stream_from)" do
    [[], [nil], [""], [nil, []]].each do |streamables|
      error = assert_raises(ArgumentError) { view.turbo_stream_from(*streamables) }
      assert_equal "streamables can't be blank", error.message
    end
  end

  test "a name that no page could show again is refused where it is made" do
    assert_match(/too long/, assert_raises(ArgumentError) { view.turbo_stream_from("x" * 4096) }.message)
    assert view.turbo_stream_from("x" * 2000)
  end

  test "what happens between rendering and connecting arrives, once: a page born stale is caught up" do
    Announced.create!(body: "before", board: @board)
    element = page("/boards/#{@board.id}")
    Announced.create!(body: "between", board: @board)
    stream = follow(element["signed-stream-name"], last_event_id: element["cursor"])
    Announced.create!(body: "after", board: @board)
    assert_equal %w[between after], [received(stream), received(stream)].map(&:text).map(&:strip)
    assert stream.silent?
  end

  test "a page that was rendered while there was no event yet gets what happened since, and behind a restart of the hub is told a gap" do
    element = page("/boards/#{@board.id}")
    Announced.create!(body: "first", board: @board)
    stream = follow(element["signed-stream-name"], last_event_id: element["cursor"])
    assert_equal [element["cursor"], "first"], [stream["mercure-last-event-id"], received(stream).text.strip]
    forget
    request("HEAD", "#{HUB}?match=x")
    Announced.create!(body: "second", board: @board)
    stream = follow(element["signed-stream-name"], last_event_id: element["cursor"])
    assert_equal({"type" => "gap", "reason" => "unknown", "last_event_id" => element["cursor"]}, JSON.parse(stream.next.data))
    assert_equal "second", received(stream).text.strip
  end

  test "what happens after the cursor was read and before the page's data are is in both, not in neither" do
    BoardsController.meanwhile = -> { Announced.create!(body: "meanwhile", board: @board) }
    element = page("/boards/#{@board.id}")
    BoardsController.meanwhile = nil
    assert_match(/meanwhile/, request("GET", "/boards/#{@board.id}", accept: "text/html").body)
    stream = follow(element["signed-stream-name"], last_event_id: element["cursor"])
    assert_match(/meanwhile/, received(stream).to_html)
  end

  test "who was away gets what was sent meanwhile" do
    stream = follow(sign(@board))
    Announced.create!(body: "first", board: @board)
    last = stream.next.id
    stream.close
    Announced.create!(body: "while away", board: @board)
    stream = follow(sign(@board), last_event_id: last)
    assert_match(/while away/, received(stream).to_html)
  end

  test "one connection has all streams of a page" do
    names = Array.new(3) { |n| sign("stream #{n}") }
    stream = follow(*names)
    3.times { |n| Turbo::StreamsChannel.broadcast_remove_to("stream #{n}", target: n) }
    assert_equal %w[0 1 2], Array.new(3) { received(stream)["target"] }
  end

  test "what is rendered to be broadcast, outside of a request, may follow streams too" do
    message = Message.create!(body: "x")
    stream = follow(sign("x"))
    message.broadcast_append_to("x", partial: "messages/followed")
    element = received(stream).at("hikyaku-stream-source")
    assert_equal message.to_gid_param, Turbo::StreamsChannel.verified_stream_name(element["signed-stream-name"])
    assert element["cursor"]
  end

  test "the cursor is none that only others may see" do
    Hikyaku.publish("/secret", "x", private: true, id: "urn:secret:#{rand}")
    cursor = page("/boards/#{@board.id}")["cursor"]
    refute_match(/secret/, cursor)
    Announced.create!(body: "after", board: @board)
    assert_match(/after/, received(follow(sign(@board), last_event_id: cursor)).to_html)
  end

  test "without a hub that says it there is no cursor, and the page comes all the same" do
    forget
    in_environment("development") { assert_nil page("/boards/#{@board.id}")["cursor"] }
  end

  test "in tests the first page that a browser asks for makes the hub, and what is sent before it connects arrives" do
    forget
    BoardsController.meanwhile = -> { Announced.create!(body: "meanwhile", board: @board) }
    element = page("/boards/#{@board.id}")
    Announced.create!(body: "between", board: @board)
    stream = follow(element["signed-stream-name"], last_event_id: element["cursor"])
    assert_equal %w[meanwhile between], [received(stream), received(stream)].map { |each| each.text.strip }
  end

  test "a page that a test asks for without a server makes no hub, nor does one whose server has several processes" do
    forget
    served = {"HTTP_HOST" => "localhost", "HTTP_ACCEPT" => "text/html", "SERVER_SOFTWARE" => "puma", "rack.multiprocess" => true}
    [served.except("SERVER_SOFTWARE", "rack.multiprocess"), served].each do |env|
      status, _, body = Rails.application.call(Rack::MockRequest.env_for("/boards/#{@board.id}", env))
      html = +""
      body.each { |part| html << part }
      assert_equal 200, status
      assert_equal [false, nil], [elements(html).first.key?("cursor"), Hikyaku.web]
    ensure
      body&.close
    end
  end

  test "a name is good for as long as is said, and for nothing less than eleven twelfths of it" do
    [0, 1, 3599, 3600, 40_000, 86_399].each do |seconds|
      now = 1_700_000_000 + seconds
      signed = Hikyaku::Turbo::SignedName.make("x", now: now)
      expires_at = Time.iso8601(JSON.parse(signed.split("--").first.unpack1("m")).dig("_rails", "exp")).to_f
      assert_includes (11 * HOURS)..(12 * HOURS), expires_at - now
    end
  end

  test "pages that are rendered one after the other carry the same name, so that a proxy or a morph sees no change" do
    made = [0, 60, 3599, 3600].map { |seconds| Hikyaku::Turbo::SignedName.make("x", now: 1_700_000_000 - 1_700_000_000 % 3600 + seconds) }
    assert_equal [1, 2], [made.take(3).uniq.size, made.uniq.size]
    with_turbo(turbo_expires_in: nil) { assert_equal Turbo.signed_stream_verifier.generate("x"), sign("x") }
  end

  private

  # As in a process that has just begun.
  def forget
    Hikyaku.web.shutdown
    Hikyaku.reset
  end

  def elements(html) = Nokogiri::HTML5.fragment(html).css("hikyaku-stream-source").map(&:to_h)

  def view = BoardsController.new.tap { |controller| controller.set_request!(ActionDispatch::TestRequest.create) }.view_context
end
