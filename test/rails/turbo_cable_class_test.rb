# frozen_string_literal: true

ENV["HIKYAKU_TEST_CABLE"] = "1"

require "test_helper"
require "support/turbo_application"

module ApplicationCable
  class Connection < ActionCable::Connection::Base
    identified_by :current_user
    before_command { throw :abort if request.params[:names].size == 13 }
    rescue_from(FloatDomainError) { logger.info "a number was none" }

    class << self
      # @return [Integer] how often somebody has connected
      attr_accessor :count
      # @return [#call, nil] what else happens
      attr_accessor :meanwhile
    end

    def connect
      Connection.count = Connection.count.to_i + 1
      self.current_user = request.session[:user] || reject_unauthorized_connection
      logger.add_tags("cable", current_user)
      Connection.meanwhile&.call(self)
    end
  end
end

# Classes as applications write them: turbo-rails' own extended, or from the beginning.
module Rooms
  class Base < ActionCable::Channel::Base
    extend Turbo::Streams::Broadcasts
    extend Turbo::Streams::StreamName
    include Turbo::Streams::StreamName::ClassMethods
  end

  class Section < Base
    def subscribed = stream_from([params[:section], verified_stream_name_from_params].join("_"))
  end

  class Own < Base
    def subscribed = stream_from("rooms of #{current_user}")
  end

  class Members < Turbo::StreamsChannel
    def subscribed = (current_user == "7") ? super : reject
  end

  class Guarded < Turbo::StreamsChannel
    before_subscribe { reject if params[:room] == "locked" }
    before_subscribe { throw :abort if params[:room] == "shut" }
    after_subscribe { stop_all_streams if params[:room] == "emptied" }
  end

  class Boards < Turbo::StreamsChannel
    def subscribed = stream_or_reject_for(Board.find_by(id: params[:board]))
  end

  class Prefixed < Turbo::StreamsChannel
    def stream_from(name, ...) = super("tenant 1 #{name}", ...)
  end

  class Moved < Turbo::StreamsChannel
    def subscribed
      stream_from "first"
      super
      stop_stream_from "first"
    end
  end

  class Decoded < Turbo::StreamsChannel
    def subscribed = stream_from("decoded", coder: ActiveSupport::JSON)
  end

  # What refuses a page without saying so.
  SILENT = {
    "nothing" => -> {}, "an_error_of_its_own" => -> { Board.find(0) }, "unauthorized" => -> { raise ActionCable::Connection::Authorization::UnauthorizedError },
    "rescued" => -> { raise FloatDomainError, "x" }, "closed" => -> { stream_from("x") && connection.close(reconnect: false) }
  }.freeze
  # What takes more than a question, and a word of why.
  LACKING = {
    "a_block" => [-> { stream_from("x") { |message| transmit(message) } }, /"x" with a block or a coder/],
    "a_callback" => [-> { stream_from("x", ->(message) { message }) }, /"x" with a block or a coder/],
    "a_coder" => [-> { stream_from("x", coder: Marshal) }, /"x" with a block or a coder/],
    "several" => [-> { %w[x y].each { |name| stream_from(name) } }, /follows 2 streams, and an element follows one/],
    "transmits" => [-> { stream_from("x") && transmit({hello: 1}) }, /transmits to the page/],
    "transmits_and_goes_on" => [lambda {
      begin
        transmit({hello: 1})
      rescue
        nil
      end
      stream_from("x")
    }, /transmits to the page/],
    "transmits_and_rejects" => [lambda {
      begin
        transmit({hello: 1})
      rescue
        reject
      end
    }, /transmits to the page/],
    "a_timer" => [-> { stream_from("x") && connection.event_loop.timer(1) { nil } }, /starts a timer/],
    "a_thread" => [-> { stream_from("x") && connection.worker_pool.async_invoke(self, :x) }, /Action Cable's threads/],
    "an_action" => [-> { stream_from("x") && connection.send_async(:x) }, /Action Cable's threads/],
    "later" => [-> { stream_from("x") && defer_subscription_confirmation! }, /defers its confirmation/]
  }.freeze
  [SILENT, LACKING.transform_values(&:first)].each do |classes|
    classes.each { |name, block| const_set(name.camelize, Class.new(Turbo::StreamsChannel) { define_method(:subscribed, &block) }) }
  end

  # Its `broadcast_to` is Action Cable's.
  class Plain < ActionCable::Channel::Base
    def subscribed = params[:board] ? stream_for(Board.find(params[:board])) : stream_from("rooms:plain")
  end

  class Broken < Turbo::StreamsChannel
    def subscribed = raise("a bug of this class")
  end

  class Ticking < Turbo::StreamsChannel
    periodically(every: 1) { nil }
  end

  class Ending < Turbo::StreamsChannel
    def unsubscribed = nil
  end

  class EndingByCallback < Turbo::StreamsChannel
    before_unsubscribe { nil }
  end
end

# turbo_stream_from with `channel:`: the class is asked when the page asks for its token.
class TurboCableClassTest < Minitest::Test
  include TurboApplication

  def setup
    super
    ApplicationCable::Connection.count = 0
    ApplicationCable::Connection.meanwhile = nil
    @cookie = sign_in("7")
  end

  test "the page follows the stream that the class chooses, with the parameters and the name that the element was given" do
    signed = element("messages", channel: Rooms::Section, data: {section: "important"})["signed-stream-name"]
    answer = knock([signed], cookie: @cookie).json
    assert_equal [{signed => topic("important_messages")}, [signed]], answer.values_at("topics", "singly")
    stream = subscribe(answer["topics"].values, answer["token"])
    Turbo::StreamsChannel.broadcast_remove_to("messages", target: "wrong")
    Turbo::StreamsChannel.broadcast_remove_to("important_messages", target: "right")
    assert_equal "right", received(stream)["target"]
  end

  test "the class knows who it is, by the application's own connection, which one request makes once" do
    names = Array.new(3) { |n| named("x#{n}", channel: "Rooms::Own") }
    assert_equal [topic("rooms of 7")], knock(names, cookie: @cookie).json["topics"].values.uniq
    assert_equal 1, ApplicationCable::Connection.count
    assert_equal [topic("rooms of 8")], knock(names.first(1), cookie: sign_in("8")).json["topics"].values
    knock([sign("plain")], cookie: @cookie)
    assert_equal 2, ApplicationCable::Connection.count
  end

  test "whom the class or the connection refuses follows nothing" do
    members = named("room", channel: Rooms::Members)
    assert_equal [topic("room")], knock([members], cookie: @cookie).json["topics"].values
    [sign_in("8"), nil].each { |cookie| assert_equal({members => "forbidden"}, knock([members, sign("x")], cookie: cookie).json["refused"]) }
    ApplicationCable::Connection.count = 0
    assert_equal %w[forbidden forbidden], knock([members, named("x", channel: Rooms::Own)]).json["refused"].values
    assert_equal 1, ApplicationCable::Connection.count
    assert_equal ["forbidden"] * 13, knock(Array.new(13) { |n| named("x#{n}", channel: Rooms::Own) }, cookie: @cookie).json["refused"].values
  end

  test "callbacks of the class count" do
    {nil => nil, "open" => nil, "locked" => "forbidden", "shut" => "forbidden", "emptied" => "forbidden"}.each do |room, reason|
      signed = named("room", channel: Rooms::Guarded, data: {room: room})
      assert_equal [reason], [knock([signed], cookie: @cookie).json["refused"][signed]], room
    end
  end

  test "a class that follows nothing, fails as a page would or closes the connection refuses" do
    names = Rooms::SILENT.keys.to_h { |name| [name, named("x", channel: "Rooms::#{name.camelize}")] }
    refused = knock(names.values, cookie: @cookie).json["refused"]
    names.each { |name, signed| assert_equal "forbidden", refused[signed], name }
  end

  test "a failure that is no refusal lets nobody in, and the page asks again" do
    ApplicationCable::Connection.meanwhile = ->(_) { raise "the database is away" }
    assert_equal 500, knock([named("x", channel: Rooms::Own)], cookie: @cookie).status
    ApplicationCable::Connection.meanwhile = lambda(&:close)
    assert_equal ["forbidden"], knock([named("x", channel: Rooms::Own)], cookie: @cookie).json["refused"].values
    ApplicationCable::Connection.meanwhile = ->(connection) { connection.transmit({type: "hello"}) }
    assert_equal %w[unsupported unsupported], knock([1, 2].map { |n| named(n.to_s, channel: Rooms::Own) }, cookie: @cookie).json["refused"].values
  end

  test "a class that fails keeps no other stream from the page, which is to ask for it again; the error is logged and reported" do
    reports = []
    subscriber = Object.new
    subscriber.define_singleton_method(:report) { |error, handled:, source:, **| reports << [error.message, handled] if source == "hikyaku" }
    Rails.error.subscribe(subscriber)
    failing, other, wrong = named("x", channel: Rooms::Broken), sign("other"), "bad"
    assert_equal [500, 500], [[failing], [failing, failing]].map { |names| knock(names, cookie: @cookie).status }
    assert_empty reports
    [[failing, other], [other, failing], [failing, wrong]].each do |names|
      before = RailsApplication::LOG.string.size
      answer = knock(names, cookie: @cookie).json
      assert_equal [[failing], [failing]], answer.values_at("failed", "singly")
      assert_equal names - [failing], [*answer["topics"].keys, *answer["refused"].keys]
      assert_equal [["a bug of this class", true]], reports.slice!(0..)
      assert_match(/stream less.*turbo_cable_class_test.*a bug of this class/, RailsApplication::LOG.string[before..])
    end
    refute_includes knock([other], cookie: @cookie).json, "failed"
  ensure
    Rails.error.unsubscribe(subscriber)
  end

  test "what a class without a connection cannot do is refused, logged and reported, with what to do, and the other streams go on" do
    reports = []
    subscriber = Object.new
    subscriber.define_singleton_method(:report) { |error, source:, **| reports << [source, error.message] if source == "hikyaku" }
    Rails.error.subscribe(subscriber)
    Rooms::LACKING.each do |name, (_, why)|
      signed = named("x", channel: "Rooms::#{name.camelize}")
      before = RailsApplication::LOG.string.size
      answer = knock([signed, sign("other")], cookie: @cookie).json
      assert_equal [{signed => "unsupported"}, 1], [answer["refused"], answer["topics"].size], name
      assert_equal ["hikyaku"], reports.map(&:first), name
      assert_match(/Rooms::#{name.camelize}.*#{why}.*: /, reports.pop.last, name)
      assert_match(/ERROR.*#{why}/, RailsApplication::LOG.string[before..], name)
    end
  ensure
    Rails.error.unsubscribe(subscriber)
  end

  test "a stream for a record is followed, and what the class broadcasts to it arrives" do
    signed = named("x", channel: Rooms::Boards, data: {board: @board.id})
    answer = knock([signed], cookie: @cookie).json
    stream = subscribe(answer["topics"].values, answer["token"])
    Rooms::Boards.broadcast_to(@board, %(<turbo-stream action="remove" target="one"></turbo-stream>).html_safe)
    Rooms::Boards.broadcast_remove_to(Rooms::Boards.broadcasting_for(@board), target: "two")
    assert_equal %w[one two], [received(stream)["target"], received(stream)["target"]]
    none = named("x", channel: Rooms::Boards, data: {board: 0})
    assert_equal({none => "forbidden"}, knock([none], cookie: @cookie).json["refused"])
  end

  test "what is no Turbo Stream is still broadcast by Action Cable" do
    require "action_cable/test_helper"
    extend ActionCable::TestHelper

    before_setup
    Rooms::Boards.broadcast_to(@board, {x: 1})
    assert_broadcast_on(Rooms::Boards.broadcasting_for(@board), {"x" => 1})
    assert_empty Hikyaku::TestHelper.recorder.updates
  end

  test "a record's stream of a class whose broadcasts go by Action Cable is refused" do
    signed = [named("x", channel: Rooms::Plain, data: {board: @board.id}), named("x", channel: Rooms::Plain)]
    answer = knock(signed, cookie: @cookie).json
    assert_equal [{signed[0] => "unsupported"}, {signed[1] => topic("rooms:plain")}], answer.values_at("refused", "topics")
    assert_match(/Rooms::Plain.*extend Turbo::Streams::Broadcasts/, RailsApplication::LOG.string)
  end

  test "a class that changes which stream it follows follows that one" do
    {Rooms::Prefixed => "tenant 1 room", Rooms::Moved => "room", Rooms::Decoded => "decoded"}.each do |type, name|
      assert_equal [topic(name)], knock([named("room", channel: type)], cookie: @cookie).json["topics"].values, type
    end
  end

  test "authorize is asked of the stream that the class has chosen, and gets the parameters; both must agree" do
    asked = []
    Hikyaku::Turbo.authorize do |name, request, params|
      asked << [name, request.class, params]
      params[:section] != "secret"
    end
    names = %w[important secret].map { |section| named("messages", channel: Rooms::Section, data: {section: section}) }
    answer = knock([*names, named("room", channel: Rooms::Members)], cookie: sign_in("8")).json
    assert_equal [topic("important_messages")], answer["topics"].values
    assert_equal %w[forbidden forbidden], answer["refused"].values
    assert_equal [%w[important_messages important], %w[secret_messages secret]], asked.map { |name, _, params| [name, params["section"]] }
  end

  test "neither the class nor the parameters can be left out or changed by a page" do
    signed = named("messages", channel: Rooms::Section, data: {section: "important"})
    assert_nil Turbo::StreamsChannel.verified_stream_name(signed)
    data, digest = signed.split("--")
    changed = [data.unpack1("m").sub("important", "secret")].pack("m0")
    assert_equal %w[invalid], knock(["#{changed}--#{digest}"], cookie: @cookie).json["refused"].values
    expired = with_turbo(turbo_expires_in: 0.000_001) { named("x", channel: Rooms::Own) }
    assert_equal %w[expired], knock([expired], cookie: @cookie).json["refused"].values
  end

  test "the element says which class it is, for tests, and a class that cannot be asked is an error of the view" do
    assert_equal ["Rooms::Own", "1"], element("x", channel: Rooms::Own, data: {room: 1}).values_at("channel", "data-room")
    {"NoSuchClass" => /NoSuchClass, and that is no class of Action Cable.*leave channel: out/, "String" => /no class/, "Rooms" => /no class/, Board => /no class/,
     "ActionCable::Channel::Base" => /no class/, "Rooms::Ticking" => /periodically.*let a job/}.each do |channel, message|
      assert_match(message, assert_raises(Hikyaku::ConfigError) { element("x", channel: channel) }.message)
    end
    long = assert_raises(ArgumentError) { element("room", channel: Rooms::Own, data: {room: "x" * 4096}) }
    assert_match(/\Athe stream name room… is too long: signed, with the class and the data- attributes,/, long.message)
  end

  test "of a class that would be told that a page has left, the log says once that it is not" do
    before = RailsApplication::LOG.string.size
    2.times { [Rooms::Ending, Rooms::EndingByCallback, Rooms::Own].each { |type| element("x", channel: type) } }
    assert_equal %w[Rooms::Ending Rooms::EndingByCallback], RailsApplication::LOG.string[before..].scan(/channel: (\S+): .*`unsubscribed`/).flatten
  end

  private

  def element(*streamables, **attributes)
    html = ApplicationController.render(inline: "<%= turbo_stream_from(*streamables, **attributes) %>", locals: {streamables: streamables, attributes: attributes})
    Nokogiri::HTML5.fragment(html).at("hikyaku-stream-source").to_h
  rescue ActionView::Template::Error => error
    raise error.cause
  end

  def named(...) = element(...)["signed-stream-name"]

  def topic(name) = Hikyaku::Turbo.topic(name)

  def sign_in(user)
    response = request("POST", "/session/#{user}")
    response["set-cookie"][/\A[^;]+/]
  end
end
