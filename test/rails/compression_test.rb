# frozen_string_literal: true

require "test_helper"
require "json"
require "open3"
require "rbconfig"
require "support/architecture"

# The middleware in a Rails application, where docs/guides/compression.md puts it: with Rails' own entity tags, streams and files.
class RailsCompressionTest < Minitest::Test
  LINE = File.read(File.join(Architecture::ROOT, "docs/guides/compression.md"))[/`(config\.middleware\.[^`]+)`/, 1]
  PROGRAM = <<~RUBY
    require "json"
    require "rack/lint"
    require "rack/mock_request"
    require "rails"
    require "action_controller/railtie"
    require "tmpdir"
    require "zlib"
    require "hikyaku/codec/rack/compression"

    class Application < Rails::Application
      config.root = Dir.mktmpdir
      config.eager_load = false
      config.secret_key_base = "s" * 64
      config.logger = Logger.new(nil)
      config.hosts.clear
      #{LINE}
      config.middleware.insert_before Hikyaku::Codec::Rack::Compression, Rack::Lint
    end

    class ItemsController < ActionController::Base
      ITEMS = Array.new(100) { |id| {id: id} }

      def index = render(json: ITEMS)
      def strong = stale?(strong_etag: "items") && render(json: ITEMS)
      def file = send_file("#{__FILE__}", type: "text/plain")

      def pieces
        headers["content-type"] = "text/plain"
        self.response_body = Enumerator.new { |out| 3.times { out << "a line\\n" * 100 } }
      end

      def off
        request.set_header("hikyaku.compression", false)
        render json: ITEMS
      end
    end

    class LiveController < ActionController::Base
      include ActionController::Live

      def index
        response.headers["content-type"] = params[:type]
        3.times { response.stream.write("a line\\n" * 100) }
      ensure
        response.stream.close
      end
    end

    Application.initialize!
    Application.routes.draw do
      %w[index strong file pieces off].each { |action| get action, to: "items#\#{action}" }
      get "live", to: "live#index"
    end

    def ask(path, method: "GET", **fields)
      env = Rack::MockRequest.env_for(path, {"HTTP_ACCEPT_ENCODING" => "gzip", :method => method}.merge(fields.transform_keys(&:to_s)))
      status, headers, body = Application.call(env)
      pieces = []
      body.each { |piece| pieces << piece }
      text = pieces.join
      text = Zlib.gunzip(text) if headers["content-encoding"] && !text.empty?
      {status: status, coding: headers["content-encoding"], vary: headers["vary"], tag: headers["etag"], bytes: text.bytesize}
    ensure
      body.close if body.respond_to?(:close)
    end

    answers = %w[index strong file pieces off].to_h { |action| [action, ask("/\#{action}")] }
    %w[index strong].each { |action| answers["\#{action} again"] = ask("/\#{action}", HTTP_IF_NONE_MATCH: answers[action][:tag]) }
    puts JSON.generate(answers.merge("head" => ask("/strong", method: "HEAD"), "live" => ask("/live?type=text/plain"), "events" => ask("/live?type=text/event-stream")))
  RUBY

  test "Rails' responses are compressed, tagged, streamed and left alone as others are" do
    output, errors, status = Open3.capture3(RbConfig.ruby, "-I#{Architecture::LIB}", "-e", PROGRAM)
    assert_predicate status, :success?, errors
    answers = JSON.parse(output.lines.last)
    varying = answers.select { |_, answer| answer["vary"] == "Accept-Encoding" }.keys
    assert_equal %w[events off], (answers.keys - varying).sort
    assert_equal %w[file index live pieces strong], answers.select { |_, answer| answer["coding"] == "gzip" }.keys.sort
    json = answers["off"]["bytes"]
    assert_equal [json, json, File.size(__FILE__), 2_100, 2_100, 2_100, 0],
      answers.values_at("index", "strong", "file", "pieces", "live", "events", "head").map { |answer| answer["bytes"] }
    assert_match(/\AW\//, answers["index"]["tag"])
    assert_match(/\A"\h+-gzip"\z/, answers["strong"]["tag"])
    # Nothing says how long it would be.
    assert_equal answers["strong"]["tag"].sub("-gzip", ""), answers["head"]["tag"]
    %w[index strong].each { |name| assert_equal [304, answers[name]["tag"]], answers["#{name} again"].values_at("status", "tag") }
  end
end
