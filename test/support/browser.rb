# frozen_string_literal: true

require "ferrum"
require "json"
require "uri"
require_relative "availability"

# A headless Chromium for tests: a fresh profile (Ferrum's), no background traffic; records what a page asks for and
# complains of.
#
#     browser = TestBrowser.new
#     page = browser.page
#     page.visit(url)
#     page.until { page.text("#state") == "Open" }
#     browser.quit
class TestBrowser
  SWITCHES = %w[
    no-sandbox disable-gpu disable-quic no-first-run disable-background-networking disable-component-update disable-sync
  ].to_h { |name| [name, nil] }.freeze
  # A name that no resolver knows, for pages that are not opened by address.
  NAME = "hub.test"
  DESKTOP = [1280, 900].freeze
  PHONE = [360, 740].freeze
  private_constant :SWITCHES

  # Gives the block at most this many seconds, because a loaded machine is slow; it returns as soon as it can.
  PATIENCE = 180

  # One page of the browser, with what it logged and asked for.
  class Page
    attr_reader :page, :complaints

    def initialize(page)
      @page = page
      @complaints = []
      page.command("Log.enable")
      page.on("Log.entryAdded") { |event| note(event["entry"]["level"], event["entry"].values_at("text", "url").compact.join(" ")) }
      page.on("Runtime.consoleAPICalled") { |event| note(event["type"], event["args"].map { |arg| arg["value"] || arg["description"] }.join(" ")) }
      page.on("Runtime.exceptionThrown") { |event| note("error", event.dig("exceptionDetails", "exception", "description") || event.dig("exceptionDetails", "text")) }
    end

    def visit(url) = page.go_to(url)

    # The value of an expression in the page.
    def js(expression, *arguments) = page.evaluate(expression, *arguments)

    # The value that a promise in the page comes to.
    def js_async(expression, wait: PATIENCE) = page.evaluate_async("(async () => (#{expression}))().then(arguments[0], (error) => arguments[0]('error: ' + error))", wait)

    def text(selector) = texts(selector).first.to_s

    # In one question to the page: an element that was found may be gone when its text is asked for.
    def texts(selector) = js("Array.from(document.querySelectorAll(#{selector.to_json}), (element) => element.textContent.trim())")

    def visible?(selector) = js("(() => { const e = document.querySelector(#{selector.to_json}); return !!e && e.checkVisibility(); })()")

    # Clicked by script, so that it works wherever the element is scrolled to.
    def click(selector) = page.execute("document.querySelector(#{selector.to_json}).click()")

    def fill(selector, value)
      page.execute(<<~JS, selector, value)
        const element = document.querySelector(arguments[0]);
        element.value = arguments[1];
        element.dispatchEvent(new Event("input", {bubbles: true}));
        element.dispatchEvent(new Event("change", {bubbles: true}));
      JS
    end

    def until(what = "the page did not get there")
      deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + PATIENCE
      loop do
        value = yield
        return value if value
        raise Minitest::Assertion, "#{what}\nconsole: #{complaints.inspect}" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline

        sleep 0.03
      end
    end

    def hosts = page.network.traffic.filter_map { |exchange| URI.parse(exchange.request.url).then { |url| "#{url.host}:#{url.port}" if url.host } }.uniq

    # @param scheme [String] "light" or "dark"
    def prefer(scheme) = page.command("Emulation.setEmulatedMedia", features: [{name: "prefers-color-scheme", value: scheme}])

    def resize(size)
      page.command("Emulation.setDeviceMetricsOverride", width: size[0], height: size[1], deviceScaleFactor: 1, mobile: size == PHONE)
    end

    def close = page.close

    private

    def note(level, text) = (complaints << "#{level}: #{text}" if %w[error warning assert].include?(level))
  end

  # @param switches [Hash{String => String, nil}] further ones of Chromium's command line
  def initialize(switches = {})
    @browser = Ferrum::Browser.new(
      browser_path: Availability.path_of("chromium"), headless: true, timeout: PATIENCE, process_timeout: 120, window_size: DESKTOP,
      browser_options: SWITCHES.merge("host-resolver-rules" => "MAP #{NAME} 127.0.0.1").merge(switches)
    )
  end

  # @return [Page] a new tab in a context of its own: no cookies or storage of another's
  def page(context: @browser.contexts.create) = Page.new(context.create_page)

  # @return [Page] a new tab that shares cookies and storage with the given one
  def tab_beside(page) = Page.new(@browser.contexts[page.page.context_id].create_page)

  # @return [Array<Hash>] what there is beside pages: workers, too (TargetInfo of the DevTools protocol)
  def targets = @browser.command("Target.getTargets").fetch("targetInfos")

  # Runs an expression in a worker, and does not wait for what it gives.
  #
  # @param target_id [String]
  # @param expression [String] JavaScript
  def evaluate_in(target_id, expression) = tell_target(target_id, "Runtime.evaluate", expression: expression)

  # @param method [String] of the DevTools protocol
  def tell_target(target_id, method, **params)
    session_id = @browser.command("Target.attachToTarget", targetId: target_id, flatten: false).fetch("sessionId")
    @browser.command("Target.sendMessageToTarget", sessionId: session_id, message: JSON.generate(id: 1, method: method, params: params))
    @browser.command("Target.detachFromTarget", sessionId: session_id)
  end

  def quit = @browser.quit
end
