# frozen_string_literal: true

require "test_helper"
require "support/availability"
require "support/browser"
require "support/client_site"

# hikyaku.js beside Turbo in Chromium: visits that replace elements, previews, its cache, refreshes. A list is right when it has every
# item once, in order.
class ClientTurboTest < Minitest::Test
  include Availability

  def self.browser = @browser ||= TestBrowser.new.tap { |browser| Minitest.after_run { browser.quit } }

  def setup
    skip_unless_available("chromium")
    @site = ClientSite.new
    @site.policy += "; style-src 'unsafe-inline'" # of Turbo's progress bar
    @pages = []
    @count = 0
  end

  def teardown
    return if skipped?
    assert_equal [], @pages.flat_map(&:complaints), "the console is not empty"
  ensure
    @pages&.each(&:close)
    @site&.stop
  end

  STREAM = "/list"

  def tab(beside = nil, **more)
    page = (beside ? self.class.browser.tab_beside(beside) : self.class.browser.page).tap { |each| @pages << each }
    page.visit(address(**more))
    caught_up(page)
  end

  def address(**more) = @site.page(STREAM, turbo: "1", **more)

  def caught_up(page)
    page.until("did not catch up: #{page.js("window.states")}") { page.js("document.querySelector('[state]')?.state") == "caught-up" }
    page
  end

  def add(number = 1) = number.times { @site.add(STREAM, "item #{@count += 1}") }

  def assert_list(page)
    expected = Array.new(@count) { |index| "item #{index + 1}" }
    page.until("the list is wrong") { page.texts("#list li") == expected }
  rescue Minitest::Assertion => error
    raise error.class, "#{error.message}\nthe list is #{page.texts("#list li")}"
  end

  # A visit by Turbo, which does not load the document anew.
  def go(page, address)
    page.js("window.kept = true, window.rendered = 0, addEventListener('turbo:load', () => window.rendered += 1), Turbo.visit(#{address.to_json}), 0")
    page.until("it was not rendered") { page.js("window.rendered") > 0 }
    assert page.js("window.kept"), "the document was loaded anew"
  end

  test "what is published is rendered" do
    page = tab
    add(3)
    assert_list(page)
  end

  test "pages that Turbo replaces have every item once, whatever is published while they are on their way" do
    page = tab
    6.times do |visit|
      publishing = Thread.new { 4.times { add.then { sleep 0.08 } } }
      go(page, address(late: "0.2", visit: visit))
      publishing.join
      assert_list(page)
    end
    refute_includes page.js("window.states").map(&:first), "reconnecting"
  end

  test "and so with another tab that stays on its page" do
    other = tab
    page = tab(other)
    3.times do |visit|
      add(2)
      publishing = Thread.new { 3.times { add.then { sleep 0.08 } } }
      go(page, address(late: "0.15", visit: visit))
      publishing.join
      [page, other].each { |each| assert_list(each) }
    end
  end

  test "a page from Turbo's cache goes on from where it was left, and a preview renders nothing twice" do
    page = tab
    add(2)
    assert_list(page)
    go(page, address(visit: 1))
    add(2)
    assert_list(page)
    page.js("window.rendered = 0, history.back(), 0")
    page.until("it was not restored") { page.js("window.rendered") > 0 }
    assert_list(page)
    add
    assert_list(page)
    # Turbo shows its copy of that page until the new one is there.
    publishing = Thread.new { 3.times { add.then { sleep 0.08 } } }
    go(page, address(visit: 1))
    publishing.join
    assert_list(page)
  end

  %w[replace morph].each do |refresh|
    test "a refresh by #{refresh} takes nothing away that was published while it was on its way" do
      page = tab(refresh: refresh, late: "0.2")
      add(2)
      assert_list(page)
      page.js("window.rendered = 0, addEventListener('turbo:load', () => window.rendered += 1), Turbo.session.refresh(location.href), 0")
      5.times { add.then { sleep 0.08 } }
      page.until("it was not refreshed") { page.js("window.rendered") > 0 }
      assert_list(page)
      add
      assert_list(page)
    end
  end

  test "a page that morphs into the same once more shows its state still" do
    page = tab
    page.page.execute(<<~JS)
      const element = document.querySelector("hikyaku-stream-source")
      const same = element.cloneNode()
      same.removeAttribute("state")
      Turbo.morphElements(element, same)
    JS
    assert_equal %w[connected caught-up], page.js("window.states").map(&:first)
    assert_equal "caught-up", page.js("document.querySelector('hikyaku-stream-source').state")
    add
    assert_list(page)
  end

  test "a gap refreshes the page, once for all of its elements, and the page may forbid it" do
    page = tab
    page.js("window.fetched = 0, addEventListener('turbo:before-fetch-request', () => window.fetched += 1), 0")
    page.js("element('/list', '#unknown'), element('/other', '#unknown'), 0")
    page.until("no gap: #{page.js("window.states")}") { page.js("window.states").any? { |state, _| state == "gap" } }
    page.until("it was not refreshed") { page.js("window.fetched") > 0 }
    caught_up(page)
    assert_equal 1, page.js("window.fetched")

    forbidding = tab
    forbidding.js("window.fetched = 0, addEventListener('turbo:before-fetch-request', () => window.fetched += 1), addEventListener('hikyaku:gap', (event) => event.preventDefault()), 0")
    forbidding.js("element('/list', '#unknown'), 0")
    forbidding.until { forbidding.js("window.states").any? { |state, _| state == "gap" } }
    sleep 2.5 # longer than the page would have waited
    assert_equal 0, forbidding.js("window.fetched")
  end

  # A page with a gap, and with something in a form, which logs what happens.
  def entering(on_wait = "")
    tab.tap do |page|
      page.js(<<~JS)
        (() => {
          window.log = [];
          document.body.insertAdjacentHTML("beforeend", "<form id='entry'><input name='text' value='old'></form>");
          document.querySelector("#entry input").value = "typed";
          addEventListener("turbo:before-fetch-request", () => log.push("fetch"));
          document.addEventListener("hikyaku:refresh-waits", (event) => { log.push(event.detail.forms.map(({id}) => id).join()); #{on_wait} });
          element("/list", "#unknown");
        })()
      JS
      page.until("it does not wait: #{page.js("log")}") { page.js("log").include?("entry") }
    end
  end

  test "a refresh after a gap waits until what was entered into a form is sent or reset, and tells the page once" do
    page = entering
    sleep 1.5 # it looks again each second
    page.js("log.push('reset'), document.querySelector('#entry').reset()")
    page.until("it was not refreshed") { page.js("log").include?("fetch") }
    assert_equal %w[entry reset fetch], page.js("log")
  end

  test "the page may have it refreshed all the same, or not at all" do
    page = entering("event.detail.refresh(); log.push('called')")
    page.until("it was not refreshed") { page.js("log").include?("fetch") }
    assert_equal %w[entry fetch], page.js("log") - %w[called]
    later = entering("window.refresh = event.detail.refresh")
    later.js("log.push('asked'), refresh(), 0")
    later.until("it was not refreshed") { later.js("log").include?("fetch") }
    assert_equal %w[entry asked fetch], later.js("log")
    forbidding = entering("event.preventDefault()")
    sleep 1.5 # longer than it would take to look again
    # And the next gap asks anew.
    forbidding.js("element('/other', '#unknown'), 0")
    forbidding.until("it does not ask again: #{forbidding.js("log")}") { forbidding.js("log").count("entry") >= 2 }
    refute_includes forbidding.js("log"), "fetch"
  end

  # By markup, what somebody does, and whether that counts.
  ENTRIES = {
    "<input>" => [{value: "x"}, true], "<input value='x'>" => [{}, false], "<textarea>x</textarea>" => [{value: "y"}, true],
    "<textarea>x</textarea><i></i>" => [{}, false], "<input type=checkbox checked>" => [{checked: false}, true], "<input type=checkbox>" => [{}, false],
    "<input type=radio>" => [{checked: true}, true], "<select><option>1<option>2</select>" => [{selectedIndex: 1}, true],
    "<select><option>1<option selected>2</select>" => [{}, false], "<select><option disabled>0<option>1</select>" => [{}, false],
    "<select><option>1<option>2</select><i></i>" => [{}, false], "<select multiple><option>1<option>2</select>" => [{selectedIndex: 1}, true],
    "<select multiple><option selected>1<option>2</select>" => [{}, false], "<input type=hidden value=x>" => [{value: "y"}, false], "<input type=range>" => [{}, false],
    "<input type=color>" => [{}, false], "<input type=range value=1>" => [{value: 2}, true], "<input disabled>" => [{value: "x"}, false],
    "<input data-turbo-permanent id=kept>" => [{value: "x"}, false], "<select></select>" => [{}, false], "<button>go</button>" => [{}, false],
    # What a browser writes otherwise than the page; datetime_local_field of Rails says seconds.
    "<input type=datetime-local value='2030-01-01T10:00:00'>" => [{}, false], "<input type=datetime-local value='2030-01-01T10:00:00'><i></i>" => [{value: "2030-01-01T10:01"}, true],
    "<input type=color value='#FFF000'>" => [{}, false], "<input type=color value='#FFF000'><i></i>" => [{value: "#fff001"}, true], "<input type=color><i></i>" => [{value: "#fff001"}, true],
    "<input type=range><i></i>" => [{value: 3}, true], "<input type=email value=' a@example.com ' @input=x>" => [{}, false],
    "<textarea>1&#13;2</textarea>" => [{}, false], "<textarea>1&#13;2</textarea><i></i>" => [{value: "2"}, true],
    "<select><optgroup disabled><option>1</optgroup><option>2</select>" => [{}, false], "<input type=radio name=a checked><input type=radio name=a checked>" => [{}, false],
    "<some-editor></some-editor>" => [{}, false], "<some-editor></some-editor><i></i>" => [{value: "typed"}, true], "<output>1</output>" => [{value: "2"}, false]
  }.freeze

  test "what somebody entered is told from what the page came with" do
    page = tab
    page.js("customElements.define('some-editor', class extends HTMLElement { static formAssociated = true; defaultValue = this.value = '' })")
    counted = page.js_async(<<~JS)
      import("/modules/forms.js").then(({changedForms}) => #{ENTRIES.map { |markup, (action, _)| [markup, action] }.to_json}.map(([markup, action]) => {
        document.querySelector("#list").innerHTML = `<form>${markup}</form>`;
        Object.assign(document.querySelector("#list form").elements[0], action);
        return changedForms().length === 1;
      }))
    JS
    assert_equal ENTRIES.transform_values(&:last), ENTRIES.keys.zip(counted).to_h
  end

  test "what somebody entered outside of forms counts, too, until it is gone" do
    page = tab
    page.js(<<~JS)
      document.querySelector("#list").innerHTML = "<form id='f'></form><input id='a'><input form='f' id='b'><p contenteditable id='c'>old</p><p contenteditable id='d'>x</p>" +
        "<div data-turbo-permanent id='k'><p contenteditable id='e'></p></div><select id='g'><option>1<option>2</select>"
    JS
    assert_empty changed(page)
    page.js("document.querySelector('#a').value = 'typed', document.querySelector('#b').value = 'typed', document.querySelector('#g').selectedIndex = 1, 0")
    # Changed by the page itself.
    page.js("document.querySelector('#d').textContent = 'y', 0")
    %w[c e].each do |id|
      page.js("document.querySelector('##{id}').focus(), 0")
      page.page.command("Input.insertText", text: "new")
    end
    assert_equal %w[f a c g], changed(page)
    page.js("document.querySelector('#c').textContent = 'old', document.querySelector('#a').value = '', document.querySelector('#b').value = '', document.querySelector('#g').selectedIndex = 0, 0")
    assert_empty changed(page)
    page.js("document.querySelector('#c').textContent = 'what a refresh brought', 0")
    assert_empty changed(page)
  end

  # As it is with a field that is named for what a form or the document has.
  test "what somebody entered counts whatever forms and fields are called" do
    page = tab
    page.js(<<~JS)
      document.querySelector("#list").innerHTML = "<form id='f' name='forms'><input name='elements' id='a'></form>" +
        "<form id='g'><input name='elements' id='b'><input name='id'></form><img name='forms'>"
    JS
    assert_empty changed(page)
    page.js("document.querySelector('#a').value = 'typed', 0")
    assert_equal %w[f], changed(page)
  end

  test "what is written into an editor that keeps its events to itself, or writes what is typed itself, counts" do
    page = tab
    page.js(<<~JS)
      (() => {
        document.querySelector("#list").innerHTML = "<p contenteditable id='c'>old</p><p contenteditable id='d'>old</p>";
        document.querySelector("#c").addEventListener("beforeinput", (event) => event.stopPropagation());
        document.querySelector("#d").addEventListener("beforeinput", (event) => {
          event.preventDefault();
          event.target.textContent += event.data;
        });
      })()
    JS
    assert_empty changed(page)
    %w[c d].each do |id|
      page.js("document.querySelector('##{id}').focus(), 0")
      page.page.command("Input.insertText", text: "new")
    end
    assert_equal %w[c d], changed(page)
  end

  def changed(page)
    page.js_async("import('/modules/forms.js').then(({changedForms, changedControls}) => [...changedForms(), ...changedControls()].map(({id}) => id))")
  end

  # Nothing waits for seconds, but for what waits for ten or more.
  AT_ONCE = "Math.random = () => 0; ((set) => window.setTimeout = (action, wait, ...more) => set(action, wait > 2500 && wait < 10000 ? 0 : wait, ...more))(setTimeout)"
  private_constant :AT_ONCE

  # A page whose names are asked about again after a second or two, and that does not wait with a refresh.
  def brief_tab(beside = nil, **more)
    @site.token_seconds = 3
    page = (beside ? self.class.browser.tab_beside(beside) : self.class.browser.page).tap { |each| @pages << each }
    page.page.command("Page.addScriptToEvaluateOnNewDocument", source: AT_ONCE)
    page.visit(address(**more))
    page
  end

  def loads = @site.pages.size

  def refusals(page) = page.js("window.states").count(%w[refused expired])

  def state(page) = page.js("document.querySelector('hikyaku-stream-source').state")

  %w[replace morph].each do |refresh|
    test "a name that expires gets the page a new one, and nothing is lost (#{refresh})" do
      page = caught_up(brief_tab(late: "0.2", refresh: refresh))
      add(2)
      assert_list(page)
      page.js("window.kept = true")
      @site.expire
      publishing = Thread.new { add.then { sleep 0.05 } until loads > 1 }
      page.until("it was not refused") { refusals(page) == 1 }
      page.until("it was not refreshed") { loads == 2 }
      publishing.join
      caught_up(page)
      add(2)
      assert_list(page)
      # And once more, though the last time is not long ago.
      @site.expire
      page.until("it was not refreshed again") { loads == 3 }
      add
      assert_list(caught_up(page))
      assert_equal [2, true], [refusals(page), page.js("window.kept")]
    end
  end

  test "a page that comes again with a name that has expired is refreshed once and left alone, and says that it is refused" do
    page = caught_up(brief_tab)
    @site.stale = true
    @site.expire
    page.until("it was not refused again") { refusals(page) == 2 }
    asked = @site.token_requests.size
    sleep 0.7
    assert_equal [2, 2, asked, "refused"], [loads, refusals(page), @site.token_requests.size, state(page)]
    # Elsewhere there may be a page that is good.
    @site.stale = false
    page.js("Turbo.visit(#{address(visit: 1).to_json}), 0")
    page.until("it is not the other page") { page.js("location.search").include?("visit") }
    caught_up(page)
  end

  test "and so where each refresh loads the document anew" do
    @site.stale = true
    @site.expire
    page = brief_tab(reload: "1")
    page.until("it was not loaded anew") { page.js("performance.timeOrigin > JSON.parse(sessionStorage['hikyaku/refreshed'] ?? '{}').at") }
    page.until("it was not refused") { refusals(page) == 1 }
    before = loads
    sleep 0.7
    assert_equal [before, "refused"], [loads, state(page)]
  end

  test "a name that expires of those who are here gets the page a new one, too, unless the page forbids it" do
    page = caught_up(brief_tab)
    refuse = "document.body.appendChild(document.createElement('hikyaku-presence')).dispatchEvent(" \
      "new CustomEvent('hikyaku:refused', {bubbles: true, cancelable: true, detail: {reason: %p}})), 0"
    page.js("addEventListener('hikyaku:refused', (event) => event.preventDefault(), {once: true}), 0")
    page.js(format(refuse, "expired"))
    page.js(format(refuse, "forbidden"))
    sleep 0.3
    assert_equal 1, loads
    page.js(format(refuse, "expired"))
    page.until("it was not refreshed") { loads == 2 }
  end

  # With addresses that are relative to something else than the page.
  test "a page that is not seen is refreshed when it is, and one that forbids it is not" do
    @site.policy = @site.policy.sub("base-uri 'none'", "base-uri 'self'")
    page = caught_up(brief_tab(base: "1"))
    forbidding = caught_up(brief_tab(page, forbid: "1")) # in front of it
    forbidding.js("addEventListener('hikyaku:refused', (event) => event.preventDefault()), 0")
    page.until("it is still seen") { page.js("document.visibilityState") == "hidden" }
    @site.expire
    [page, forbidding].each { |each| each.until("it was not refused") { refusals(each) == 1 } }
    sleep 0.7
    assert_equal 2, loads
    page.page.command("Page.bringToFront")
    page.until("it was not refreshed") { loads == 3 }
    caught_up(page)
    add
    assert_list(page)
  end

  test "a gap soon after another refreshes the page once more, later, and not without end" do
    page = caught_up(brief_tab)
    gap = lambda do |number|
      page.js("element('/#{number}', '#unknown #{number}'), 0")
      page.until("no gap: #{page.js("window.states")}") { page.js("window.states").count { |state, _| state == "gap" } == number }
    end
    2.times do |number|
      gap.call(number + 1)
      page.until("it was not refreshed") { loads == number + 2 }
      page.until("it is not the new page") { page.js("document.querySelectorAll('hikyaku-stream-source').length") == 1 }
      caught_up(page)
    end
    # Now it waits for a minute.
    gap.call(3)
    sleep 0.7
    assert_equal [3, 1], [loads, page.js("JSON.parse(sessionStorage['hikyaku/refreshed']).fruitless")]
  end

  # An element of another stream, of which something is lost; since then it has come to a newer event. The refresh is a minute off.
  def lacking(page)
    page.js("Math.random = () => 0, sessionStorage['hikyaku/refreshed'] = JSON.stringify({url: location.pathname + location.search, at: Date.now(), fruitless: 1}), 0")
    page.js("window.lacking = element('/other', '#unknown'), 0")
    page.until("no gap: #{page.js("window.states")}") { page.js("window.lacking.state") == "gap" }
    @site.publish("/other", "nothing to render")
    page.until("it stays where it was") { page.js("window.lacking.getAttribute('cursor')") == @site.newest }
  end

  test "a page that left for Turbo's cache before its refresh is refreshed when it comes back" do
    page = tab
    add
    lacking(page)
    go(page, address(visit: 1))
    assert_equal 2, loads
    page.js("delete sessionStorage['hikyaku/refreshed'], history.back(), 0")
    page.until("it was not refreshed") { loads == 3 }
    page.until("it is not the new page") { page.js("document.querySelectorAll('hikyaku-stream-source').length") == 1 }
    assert_equal [address], @site.pages.last(1).map { |path| "#{@site.origin}#{path}" }
    assert_list(caught_up(page))
  end

  test "an element that lacked something begins anew when its page is morphed, and is not refreshed again" do
    page = tab
    lacking(page)
    page.page.execute(<<~JS)
      const same = window.lacking.cloneNode()
      for (const name of ["state", "lacking"]) same.removeAttribute(name)
      Turbo.morphElements(window.lacking, same)
    JS
    page.until("it is in the state #{page.js("window.lacking.state")}") { page.js("window.lacking.state") == "caught-up" }
    refute page.js("window.lacking.hasAttribute('lacking')")
    assert_equal 1, loads
  end

  test "the page may keep an event from being rendered" do
    page = tab
    page.js("addEventListener('hikyaku:event', (event) => event.detail.data.includes('item 1<') && event.preventDefault()), 0")
    add(2)
    page.until { page.texts("#list li") == ["item 2"] }
  end

  [[], ["SharedWorker"]].each do |without|
    test "elements of the same stream render once, though they came at different events#{" (without #{without.first})" if without.any?}" do
      page = tab(without: without)
      page.js("element('/list', #{@site.newest.to_json}), element('/list', #{@site.newest.to_json}), 0")
      page.until { page.js("document.querySelectorAll('[state=caught-up]').length") == 3 }
      6.times do
        add(2)
        assert_list(page)
      end
    end
  end

  test "an element that was loaded later, at an older event, renders what came since then" do
    page = tab
    cursor = @site.newest
    add
    assert_list(page)
    page.js("document.querySelector('#list').replaceChildren(), element('/list', #{cursor.to_json}), 0")
    page.until("it was not rendered again") { page.texts("#list li") == ["item 1"] }
  end
end
