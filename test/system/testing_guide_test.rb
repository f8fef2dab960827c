# frozen_string_literal: true

require "test_helper"
require "support/live_application"
require "support/snippets"

# The system test of docs/guides/testing.md passes in an application, with Capybara and a real browser.
class TestingGuideSystemTest < Minitest::Test
  GUIDE = Snippets.files("docs/guides/testing.md").select { |path, _| path.start_with?("test/system/") }.freeze
  # What `bin/rails generate system_test` leaves to the application; as for other tests, the browser runs as root.
  DRIVEN = <<~RUBY
    require "test_helper"
    require "capybara/cuprite"

    class ApplicationSystemTestCase < ActionDispatch::SystemTestCase
      driven_by :cuprite, options: {process_timeout: 120, timeout: 60, browser_path: ENV.fetch("CHROMIUM"), browser_options: {"no-sandbox": nil}}
    end

    Capybara.default_max_wait_time = 60
  RUBY
  # What the helper of turbo-rails finds, and what it does not.
  SELECTOR = <<~RUBY
    require "application_system_test_case"

    class SelectorTest < ApplicationSystemTestCase
      test "streams are found by what they are named after, and by whether the page follows them" do
        visit root_path
        assert_turbo_cable_stream_source connected: true
        assert_turbo_cable_stream_source "stocks", connected: true, channel: "Turbo::StreamsChannel"
        assert_turbo_cable_stream_source signed_stream_name: "stocks"
        assert_turbo_cable_stream_source signed_stream_name: find("hikyaku-stream-source")["signed-stream-name"]
        assert_turbo_cable_stream_source signed_stream_name: true
        assert_no_turbo_cable_stream_source "stocks", connected: false
        assert_no_turbo_cable_stream_source "conversations", wait: 0
        assert_no_turbo_cable_stream_source ["stocks", :other], wait: 0
        assert_turbo_cable_stream_source channel: /Streams/
        assert_no_turbo_cable_stream_source channel: "RoomChannel", wait: 0
        assert_no_turbo_cable_stream_source channel: /Room/, wait: 0
        assert_no_turbo_cable_stream_source signed_stream_name: /\\Ax+\\z/, wait: 0
      end

      test "a page is waited for that does not follow yet" do
        visit new_session_path
        # Nobody can follow this one: it is not signed.
        execute_script "document.body.insertAdjacentHTML('beforeend', '<hikyaku-stream-source signed-stream-name=\\"x\\" src=\\"/hikyaku/streams\\"></hikyaku-stream-source>')"
        assert_selector "hikyaku-stream-source[state=refused]"
        assert_turbo_cable_stream_source "x", connected: false
        assert_raises(Capybara::ExpectationNotMet) { using_wait_time(0.1) { connect_turbo_cable_stream_sources } }
        visit root_path
        assert_empty all("hikyaku-stream-source:not([state])", wait: 0)
      end
    end
  RUBY

  # Each begins as the first of its process does.
  FIRST = <<~RUBY
    require "application_system_test_case"

    class FirstPageTest < ApplicationSystemTestCase
      module Meanwhile
        def index
          super
          render
          Turbo::StreamsChannel.broadcast_before_to("stocks", targets: "body > *:first-child", html: "<p>Published before anybody followed</p>")
        end
      end

      test "what is published between the first page and its following arrives" do
        Hikyaku.web&.shutdown
        Hikyaku.reset
        StocksController.prepend(Meanwhile)
        visit root_path
        assert_text "Published before anybody followed"
      ensure
        Meanwhile.remove_method(:index)
      end
    end
  RUBY

  test "the application's system tests pass" do
    browser, = skip_unless_available("chromium")
    assert_equal 1, GUIDE.size
    folder = RailsServer::Folder.new({**GUIDE, "test/application_system_test_case.rb" => DRIVEN, "test/system/selector_test.rb" => SELECTOR, "test/system/first_page_test.rb" => FIRST},
      example: LiveApplication::EXAMPLE)
    output, status = folder.run("bin/rails", "db:test:prepare", "test:system", RAILS_ENV: "test", MT_NO_PLUGINS: nil, CHROMIUM: browser)
    assert status.success?, output
    assert_match(/^4 runs, \d+ assertions, 0 failures, 0 errors, 0 skips$/, output)
  ensure
    folder&.remove
  end
end
