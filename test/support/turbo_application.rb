# frozen_string_literal: true

require_relative "rails_application"
require_relative "http_client"
require "puma"
require "puma/server"

# Models that broadcast in all the ways that turbo-rails knows, and pages that follow them, in the application of the tests.
ActiveRecord::Schema.verbose = false
ActiveRecord::Schema.define do
  create_table(:boards) { |table| table.string :name }
  create_table(:messages) do |table|
    table.references :board
    table.string :body
  end
end

class ApplicationController < ActionController::Base
  def sign_in
    session[:seen] = true
    session[:user] = params[:user] unless params[:user] == "nobody"
    render plain: session.id.public_id
  end

  private

  def current_user = session[:user]

  def hikyaku_subject = current_user && "user-#{current_user}"
end

class BoardsController < ApplicationController
  class << self
    # @return [#call, nil] what happens after the page was begun, and before its data are read
    attr_accessor :meanwhile
    # @return [Hash, nil] attributes of the element
    attr_accessor :attributes
  end

  before_action { BoardsController.meanwhile&.call }

  def show
    @board = Board.find(params[:id])
    @attributes = BoardsController.attributes
  end

  def post
    RefreshingBoard.create!(board: Board.find(params[:id]), body: params[:body])
    head :no_content
  end
end

class Board < ActiveRecord::Base
  has_many :messages
end

class Message < ActiveRecord::Base
  belongs_to :board, optional: true

  # Whatever the class, its partial and its elements are the same.
  def self.model_name = ActiveModel::Name.new(Message)
end

# The same table with each of the declarations.
class Announced < Message
  self.table_name = "messages"
  broadcasts_to :board
end

class Listed < Message
  self.table_name = "messages"
  broadcasts
end

class Refreshing < Message
  self.table_name = "messages"
  broadcasts_refreshes
end

class RefreshingBoard < Message
  self.table_name = "messages"
  broadcasts_refreshes_to :board
end

# A hub in this process, reached through the whole application on Puma: pages, the door, streams.
module TurboApplication
  HUB = "/.well-known/mercure"
  DOOR = "/hikyaku/streams"

  class << self
    # @return [Integer] the port of one server for all tests
    def port
      @port ||= begin
        server = Puma::Server.new(Rails.application, nil, min_threads: 1, max_threads: 5, environment: "production", log_writer: Puma::LogWriter.null)
        server.add_tcp_listener("127.0.0.1", 0)
        Minitest.after_run { server.stop(true) }
        server.run
        server.connected_ports.first
      end
    end
  end

  def setup
    super
    Hikyaku.reset
    Hikyaku::TestHelper.recorder.clear
    Turbo::ThreadDebouncer.debouncer_class = Turbo::ImmediateDebouncer
    Message.delete_all
    Board.delete_all
    @board = Board.create!(name: "Notices")
    @streams = []
    # The first request for it makes the hub.
    request("HEAD", "#{HUB}?match=x")
  end

  def teardown
    @streams.each(&:close)
    Hikyaku.web&.shutdown
    Hikyaku.reset
    Hikyaku::Turbo.forget_authorization
    BoardsController.meanwhile = BoardsController.attributes = nil
    super
  end

  # Runs a block with other settings than the application's.
  def with_turbo(**settings)
    before = Hikyaku::Turbo.settings
    Hikyaku::Turbo.settings = Hikyaku::Turbo::Settings.new({turbo: true, **settings})
    yield
  ensure
    Hikyaku::Turbo.settings = before
  end

  # @return [Array<Hikyaku::Hub::Update>] what the block publishes
  def published
    before = Hikyaku::TestHelper.recorder.updates.size
    yield
    Hikyaku::TestHelper.recorder.updates.drop(before)
  end

  def client = @client ||= HttpClient.new(TurboApplication.port)

  # @return [HttpClient::Response]
  def request(method, path, body: nil, **headers)
    client.request(method, path, body: body, headers: {"host" => "localhost"}.merge(headers.transform_keys { |name| name.to_s.tr("_", "-") }))
  end

  # @return [Hash] attributes of the elements that follow streams
  def page(path, **headers)
    response = request("GET", path, accept: "text/html", **headers)
    raise "#{response.status}: #{response.body}" unless response.status == 200
    Nokogiri::HTML5.parse(response.body).at("hikyaku-stream-source").to_h
  end

  # What the script of a page asks for.
  def knock(names, cookie: nil, **headers)
    headers = {content_type: "application/json", origin: "http://localhost", cookie: cookie}.merge(headers).compact
    request("POST", DOOR, body: names.is_a?(String) ? names : JSON.generate(names: names), **headers)
  end

  def sign(*streamables) = Turbo::StreamsChannel.signed_stream_name(streamables)

  # @return [EventStream] of what a page that carries these names receives
  def follow(*names, last_event_id: nil, **options)
    answer = knock(names, **options).json
    subscribe(answer["topics"].values, answer["token"], last_event_id: last_event_id)
  end

  # @return [EventStream, HttpClient::Response]
  def subscribe(topics, token, last_event_id: nil)
    query = URI.encode_www_form({match: topics, last_event_id: last_event_id}.compact)
    client.stream("GET", "#{HUB}?#{query}", headers: {"host" => "localhost", "authorization" => ("Bearer #{token}" if token)}.compact).tap { |stream| @streams << stream if stream.is_a?(EventStream) }
  end

  # @return [Nokogiri::XML::Element] the element `<turbo-stream>` of the next event
  def received(stream) = Nokogiri::HTML5.parse(stream.next.data).at("turbo-stream")
end
