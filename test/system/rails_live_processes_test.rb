# frozen_string_literal: true

require "test_helper"
require "support/fleet"
require "support/live_application"

# The example with Turbo on Puma with two workers, and the hub beside them: two browsers at once, and thousands of readers.
class RailsLiveProcessesTest < Minitest::Test
  include LiveApplication

  READERS = 5_000
  OTHER_FILES = 500

  # Which worker answers; it tells both browsers and all readers. What models announce is rendered at once: the example's jobs run
  # in threads of a worker, and those that have not run when it ends are lost, whoever delivers.
  WHO = {"app/controllers/who_controller.rb" => <<~RUBY, "config/initializers/who.rb" => <<~ROUTE}.freeze
    class WhoController < ApplicationController
      skip_before_action :require_sign_in

      def show
        Message.create!(conversation_id: 1, user: User.find_or_create_by!(name: "Worker"), body: "worker \#{Process.pid}") unless params[:quiet]
        Hikyaku.publish("/anybody", "number \#{params[:number]}.")
        render plain: Process.pid
      end
    end
  RUBY
    Rails.application.config.hikyaku.anonymous = true
    Rails.application.config.after_initialize do
      Rails.application.routes.append { get "/who", to: "who#show" }
      Rails.application.reload_routes!
      Turbo::Streams::ActionBroadcastJob.queue_adapter = :inline
    end
  ROUTE

  # Two who answer each other: what one says, the other has heard. It notes all that it hears, in order, by what is added to
  # the page, so that nothing hides what came twice. As a user it says nothing before what it said last was taken.
  TALK = <<~JS
    (() => {
      const [name, other] = %s
      const talk = window.talk = {said: 0, heard: [], failed: [], ended: false}
      let taken = Promise.resolve()
      talk.say = () => {
        const text = `${name} ${++talk.said}`
        taken = taken.then(() => new Promise((resolve) => {
          document.addEventListener("turbo:submit-end", ({detail}) => {
            if (!detail.success) talk.failed.push(`${text}: ${detail.fetchResponse?.statusCode ?? detail.error}`)
            // The form is another when the answer has been rendered.
            setTimeout(resolve)
          }, {once: true})
          const form = document.querySelector("#new_message")
          form.querySelector("[type=text]").value = text
          form.requestSubmit()
        }))
      }
      new MutationObserver((changes) => {
        for (const text of changes.flatMap(({addedNodes}) => [...addedNodes]).map((node) => node.querySelector?.("span")?.textContent)) {
          if (/^(Ada|Bob) \\d+$/.test(text)) talk.heard.push(text)
          if (text?.startsWith(`${other} `) && !talk.ended) talk.say()
        }
      }).observe(document.querySelector("#messages"), {childList: true})
    })()
  JS

  def setup
    super
    @folder = LiveApplication.folder(WHO)
    bundler = ENV.keys.grep(/\ABUNDLER_ORIG/).to_h { |name| [name.to_sym, nil] }
    @server = LiveApplication.start(@folder, WEB_CONCURRENCY: "2", TMPDIR: @folder.path, **bundler)
  end

  def teardown
    super
    @fleet&.close
    @server&.stop
    @folder&.remove
  end

  test "all workers reach both browsers, jobs too; in a phased restart none of 5,000 is cut off, and two who talk miss nothing; who signs out is cut off everywhere" do
    skip "#{READERS} sockets do not fit into the limit of open files: ulimit -n" unless Fleet.allow(READERS + OTHER_FILES)
    open_fleet
    ada, bob = open_page(one, "/conversations/1", who: "Ada"), open_page(other, "/conversations/1", who: "Bob")
    [ada, bob].each { |page| watch(page) }
    workers = both_workers
    workers.each { |pid| [ada, bob].each { |page| await_message(page, "worker #{pid}") } }

    talk, new_workers = while_they_talk(ada, bob) do
      restart
      both_workers
    end
    assert_empty workers & new_workers
    new_workers.each { |pid| [ada, bob].each { |page| await_message(page, "worker #{pid}") } }
    send_message(ada, "Still there?")
    [ada, bob].each { |page| await_message(page, "Still there?") }
    assert_equal [[], []], [ada, bob].map { |page| page.js("window.happened") }
    [ada, bob].each { |page| assert_equal [talk, []], page.js("[window.talk.heard, window.talk.failed]") }
    assert_fleet_has_everything

    exports = open_tab(one, ada, "/exports")
    exports.click("#new_export")
    exports.until("it does not end") { exports.text(".export .state") == "done" }

    exports.click("#leave")
    ada.until("it still follows: #{states(ada)}") { states(ada) == ["refused"] }
    send_message(bob, "not for Ada")
    await_message(bob, "not for Ada")
    refute_includes messages(ada), "not for Ada"
  end

  private

  def open_fleet
    @asked = 0
    @fleet = Fleet.new(@server.port, "GET /.well-known/mercure?match=/anybody HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n")
    @fleet.open(READERS, seconds: 60)
  end

  # Every reader, on the connection that it has had since the beginning: each update, once.
  def assert_fleet_has_everything
    last = "number #{@asked}."
    @fleet.pump(HttpClient.now + 60, "the last update to all") { @fleet.members.all? { |member| member.count(last) == 1 } }
    assert_equal 0, @fleet.members.count(&:ended?)
    numbers = Array.new(@asked) { |index| "number #{index + 1}." }
    assert_equal [numbers], @fleet.members.map { |member| member.bytes.scan(/number \d+\./) }.uniq
  end

  def ask(more = "") = @server.get("/who?number=#{@asked += 1}#{more}", "host" => "localhost")

  def url = "http://localhost:#{@server.port}"

  # All the while the two say something and hear it from each other, and never stop.
  #
  # @return [Array(Array<String>, Object)] all that was said, in order, and what the block returns
  def while_they_talk(ada, bob)
    [[ada, %w[Ada Bob]], [bob, %w[Bob Ada]]].each { |page, names| page.js(format(TALK, names.to_json)) }
    talks = [ada, bob].map { |page| -> { page.js("({...window.talk, count: window.talk.heard.length, heard: window.talk.heard.slice(-3)})") } }
    count = -> { talks.first.call["count"] }
    await_talk = ->(&enough) { await(-> { "what they say: #{talks.map(&:call)}" }, &enough) }
    ada.js("window.talk.say()")
    await_talk.call { count.call >= 10 }
    before = count.call
    result = yield
    during = count.call - before
    await_talk.call { count.call >= before + during + 10 }
    ada.js("window.talk.ended = true")
    said = ada.js("window.talk.said")
    await_talk.call { talks.all? { |talk| talk.call["count"] >= 2 * said } }
    assert_operator during, :>, 4
    puts "\n#{during} messages between two browsers during the restart"
    [(1..said).flat_map { |number| ["Ada #{number}", "Bob #{number}"] }, result]
  end

  # Notes whatever happens to the page's streams from now on.
  def watch(page)
    page.js(<<~JS)
      (() => {
        window.happened = []
        for (const name of ["reconnecting", "gap", "refused"]) {
          document.addEventListener(`hikyaku:${name}`, () => window.happened.push(name))
        }
      })()
    JS
  end

  def await(what)
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 60
    until (value = yield)
      flunk "waited too long for #{what.respond_to?(:call) ? what.call : what}: #{@server.log}" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
      sleep 0.05
    end
    value
  end

  def both_workers
    pids = []
    await("both workers") { pids.push(ask.body).uniq.size == 2 }
    pids.uniq
  end

  def restart
    booted = @server.log.scan("booted").size
    Process.kill(:USR1, @server.pid)
    await("the restart") { ask("&quiet=1") && sleep(0.2) && @server.log.scan("booted").size >= booted + 2 }
  end
end
