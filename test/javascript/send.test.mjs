// hikyaku-send.js with an application, a clock and a page that the tests play.

import {afterEach, beforeEach, describe, mock, test} from "node:test";
import assert from "node:assert/strict";

const page = new EventTarget();
const frame = Object.assign(new EventTarget(), {
  baseURI: "https://app.test/rooms/1", token: "t0ken",
  querySelector: (selector) => (selector === 'meta[name="csrf-token"]' && frame.token ? {content: frame.token} : null),
});
globalThis.addEventListener = page.addEventListener.bind(page);
globalThis.document = frame;
globalThis.location = new URL(frame.baseURI);
globalThis.reportError = (error) => reported.push(error.message);

const {Expiring, Replies, SendError, Throttle, byType, ephemeral, send} = await import("../../app/assets/javascripts/hikyaku-send.js");

let posts = [];
let reported = [];
let application;

// Each POST waits until the test answers it.
function fetchOf(url, {signal, ...init}) {
  return new Promise((resolve, reject) => {
    signal.addEventListener("abort", () => reject(new DOMException("aborted", "AbortError")));
    const post = {url, ...init, data: JSON.parse(init.body), correlation: init.headers["Hikyaku-Correlation"], resolve, reject};
    posts.push(post);
    application?.(post);
  });
}

const response = (status, body = null, headers = {}) => new Response(status === 204 ? null : body && JSON.stringify(body), {status, headers: {"Content-Type": "application/json", ...headers}});
const answer = (...all) => (post) => post.resolve(response(...all));
const settle = async () => { for (let turn = 0; turn < 50; turn += 1) await null; await new Promise(setImmediate); };
const pass = async (seconds) => { await settle(); mock.timers.tick(seconds * 1000); await settle(); };
const event = (data, type = "message") => ({id: "1", type, data: JSON.stringify(data), identified: true});
// The result of a promise so far.
const fate = (promise) => { const seen = {}; promise.then((value) => (seen.value = value), (error) => (seen.error = error)); return seen; };

beforeEach(() => {
  mock.timers.enable({apis: ["setTimeout", "Date"]});
  globalThis.fetch = fetchOf;
  frame.token = "t0ken";
  posts = [];
  reported = [];
  application = null;
});
afterEach(() => mock.timers.reset());

describe("send", () => {
  test("is a POST of JSON with cookies, the token of the page and a correlation of its own", async () => {
    application = answer(201, {id: 7});
    assert.deepEqual(await send("typing", {typing: true}), {id: 7});
    await send("/rooms/1/typing");
    const [one, other] = posts;
    assert.deepEqual([one.url, one.method, one.data, one.credentials, one.redirect], ["https://app.test/rooms/typing", "POST", {typing: true}, "same-origin", "manual"]);
    assert.deepEqual([one.headers["Content-Type"], one.headers["X-CSRF-Token"]], ["application/json", "t0ken"]);
    assert.match(one.correlation, /^[0-9a-f]{32}$/);
    assert.notEqual(one.correlation, other.correlation);
    assert.deepEqual(other.data, {});
  });

  test("takes another method, and does without a token where the page has none", async () => {
    frame.token = null;
    application = answer(204);
    assert.equal(await send("/rooms/1/typing", {}, {method: "DELETE"}), null);
    assert.deepEqual([posts[0].method, "X-CSRF-Token" in posts[0].headers], ["DELETE", false]);
  });

  test("sends nothing to another origin", async () => {
    for (const url of ["https://evil.test/typing", "//evil.test/typing", "http://app.test/", "javascript:0", "data:,"]) {
      await assert.rejects(send(url), {name: "TypeError", message: /not the origin of this page/}, url);
    }
    assert.equal(posts.length, 0);
  });

  test("an answer that is no JSON is a text", async () => {
    application = (post) => post.resolve(new Response("fine", {headers: {"Content-Type": "text/plain"}}));
    assert.equal(await send("/a"), "fine");
    application = (post) => post.resolve(new Response("{", {headers: {"Content-Type": "application/problem+json"}}));
    assert.equal(await send("/a"), "{");
    application = (post) => post.resolve(new Response("[1]", {headers: {"Content-Type": "application/problem+json; charset=utf-8"}}));
    assert.deepEqual(await send("/a"), [1]);
  });

  test("says why it came to nothing", async () => {
    application = answer(422, {error: "too long"}, {"Retry-After": "7"});
    await assert.rejects(send("/a"), {name: "SendError", reason: "status", status: 422, answer: {error: "too long"}, retryAfter: 7, message: "/a answered 422"});
    application = (post) => post.resolve({type: "opaqueredirect", ok: false, status: 0});
    await assert.rejects(send("/a"), {reason: "redirect", message: /still signed in/});
    application = (post) => post.reject(new TypeError("Failed to fetch"));
    await assert.rejects(send("/a"), {reason: "network", message: "/a was not reached: Failed to fetch"});
    application = answer(503, null, {"Retry-After": "Fri, 31 Dec 1999 23:59:59 GMT"});
    await assert.rejects(send("/a"), {status: 503, retryAfter: null});
    await assert.rejects(send("/a", {}, {seconds: 0}), RangeError);
    await assert.rejects(send("/a", {}, {seconds: 3_601}), RangeError);
    await assert.rejects(send("/a", {}, {seconds: NaN}), RangeError);
  });

  test("gives up on an application that does not answer", async () => {
    const seen = fate(send("/a", {}, {seconds: 5}));
    await pass(4.9);
    assert.deepEqual(seen, {});
    await pass(0.1);
    assert.equal(seen.error.reason, "timeout");
  });
});

describe("Throttle", () => {
  const bodies = () => posts.map(({data}) => data);

  test("sends at once, then so often, and of what is sent meanwhile the newest", async () => {
    application = answer(204);
    const cursor = new Throttle("/cursors", {perSecond: 4});
    for (const x of [1, 2, 3]) cursor.send({x});
    await settle();
    assert.deepEqual(bodies(), [{x: 1}]);
    await pass(0.24);
    assert.deepEqual(bodies(), [{x: 1}]);
    await pass(0.01);
    assert.deepEqual(bodies(), [{x: 1}, {x: 3}]);
    cursor.send({x: 4});
    await pass(0.25);
    assert.deepEqual(bodies(), [{x: 1}, {x: 3}, {x: 4}]);
    await pass(10);
    assert.equal(posts.length, 3);
    cursor.send({x: 5});
    assert.deepEqual(bodies().at(-1), {x: 5});
  });

  test("is ten times a second unless told otherwise", async () => {
    application = answer(204);
    const cursor = new Throttle("/cursors");
    for (let step = 0; step < 99; step += 1) {
      cursor.send({step});
      await pass(0.01);
    }
    assert.equal(posts.length, 10);
  });

  test("one POST is under way at a time, however slow the application is", async () => {
    const cursor = new Throttle("/cursors");
    cursor.send({x: 1});
    for (let x = 2; x < 30; x += 1) {
      cursor.send({x});
      await pass(0.1);
    }
    assert.equal(posts.length, 1);
    answer(204)(posts[0]);
    await settle();
    assert.deepEqual(bodies(), [{x: 1}, {x: 29}]);
  });

  test("what waits can be dropped", async () => {
    application = answer(204);
    const typing = new Throttle("/typing");
    typing.send({x: 1});
    typing.send({x: 2});
    typing.cancel();
    await pass(1);
    assert.deepEqual(bodies(), [{x: 1}]);
    typing.send({x: 3});
    assert.deepEqual(bodies(), [{x: 1}, {x: 3}]);
  });

  test("after failures it waits longer each time, is told of each, and sends nothing twice", async () => {
    const errors = [];
    application = answer(500);
    const typing = new Throttle("/typing", {onerror: ({message}) => errors.push(message)});
    const times = [];
    for (let step = 0; step < 1_000; step += 1) {
      typing.send({step});
      if (posts.length > times.length) times.push(step / 10);
      await pass(0.1);
    }
    assert.deepEqual(times.map(Math.round), [0, 1, 3, 7, 15, 31, 61, 91]);
    assert.equal(errors.length, times.length);
    assert.equal(errors[0], "/typing answered 500");
    application = answer(204);
    await pass(31);
    const count = posts.length;
    await pass(60);
    assert.equal(posts.length, count);
    typing.send();
    typing.send();
    await pass(0.1);
    assert.equal(posts.length, count + 2);
    // After one that did not fail, the pause is short again.
    application = answer(500);
    await pass(1);
    for (const step of [1, 2]) typing.send({step});
    await pass(1);
    assert.equal(posts.length, count + 4);
  });

  test("Retry-After is kept, up to ten minutes", async () => {
    application = answer(429, null, {"Retry-After": "20"});
    const typing = new Throttle("/typing", {onerror() {}});
    typing.send({x: 1});
    typing.send({x: 2});
    await pass(19.9);
    assert.equal(posts.length, 1);
    application = answer(429, null, {"Retry-After": "999999999"});
    await pass(0.1);
    assert.equal(posts.length, 2);
    typing.send({x: 3});
    await pass(599.9);
    assert.equal(posts.length, 2);
    await pass(0.1);
    assert.equal(posts.length, 3);
  });

  test("an onerror that fails stops nothing, and without one the console is told", async () => {
    application = answer(403);
    const typing = new Throttle("/typing", {onerror: () => { throw new Error("mine"); }});
    typing.send();
    typing.send();
    await pass(1);
    assert.equal(posts.length, 2);
    assert.deepEqual(reported, ["mine", "mine"]);
    const warn = mock.method(console, "warn", () => {});
    new Throttle("/cursors").send();
    await settle();
    assert.deepEqual(warn.mock.calls.map((call) => call.arguments), [["hikyaku-send: /cursors answered 403"]]);
    warn.mock.restore();
  });

  test("a rate that there cannot be is refused", () => {
    for (const perSecond of [0, -1, 61, NaN, "often"]) assert.throws(() => new Throttle("/a", {perSecond}), RangeError, String(perSecond));
  });
});

describe("ephemeral", () => {
  const seer = () => {
    const seen = [];
    return {seen, it: ephemeral((data, {type}) => seen.push([data, type]))};
  };

  test("passes what is published from now on, parsed", () => {
    const {seen, it} = seer();
    it.onstate("connected");
    it.onstate("caught-up");
    it.onmessage(event({name: "Ada"}, "typing"));
    assert.deepEqual(seen, [[{name: "Ada"}, "typing"]]);
  });

  test("drops what was published while the connection was lost, and while the page was left", () => {
    const {seen, it} = seer();
    const live = (n) => { it.onmessage(event(n)); return seen.length; };
    assert.equal(live(0), 0);
    it.onstate("connected");
    assert.equal(live(1), 0);
    it.onstate("caught-up");
    assert.equal(live(2), 1);
    it.onstate("reconnecting");
    assert.equal(live(3), 1);
    it.onstate("connected");
    assert.equal(live(4), 1);
    it.onstate("caught-up");
    assert.equal(live(5), 2);
    // A page that resumes receives missed updates before the state.
    for (const leave of [() => page.dispatchEvent(new Event("pagehide")), () => frame.dispatchEvent(new Event("freeze"))]) {
      leave();
      const before = seen.length;
      assert.equal(live(6), before);
      it.onstate("connected");
      it.onstate("caught-up");
      assert.equal(live(7), before + 1);
    }
  });

  test("after a gap, and at a hub that never says that it has caught up, drops for five seconds", () => {
    for (const state of ["connected", "gap"]) {
      const {seen, it} = seer();
      it.onstate("caught-up");
      it.onstate(state);
      mock.timers.tick(4_999);
      it.onmessage(event(1));
      assert.deepEqual(seen, [], state);
      mock.timers.tick(1);
      it.onmessage(event(2));
      assert.equal(seen.length, 1, state);
    }
  });

  test("a refused stream brings nothing", () => {
    const {seen, it} = seer();
    it.onstate("caught-up");
    it.onstate("refused");
    mock.timers.tick(60_000);
    it.onmessage(event(1));
    assert.deepEqual(seen, []);
  });

  test("drops what this page has caused, in each of its streams, and nothing of others", async () => {
    const [one, other] = [seer(), seer()];
    for (const {it} of [one, other]) it.onstate("caught-up");
    application = answer(204);
    await send("/typing");
    const {correlation} = posts[0];
    for (const {it} of [one, other]) {
      it.onmessage(event({n: 1, correlation}));
      it.onmessage(event({n: 2, correlation}));
      for (const stranger of ["0".repeat(32), null, 7, undefined]) it.onmessage(event({n: 3, correlation: stranger}));
      for (const odd of [null, 7, "text", [correlation]]) it.onmessage(event(odd));
    }
    for (const {seen} of [one, other]) assert.deepEqual(seen.map(([data]) => data?.n ?? data), [3, 3, 3, 3, null, 7, "text", [correlation]]);
    mock.timers.tick(60_000);
    one.it.onmessage(event({n: 9, correlation}));
    assert.equal(one.seen.at(-1)[0].n, 9);
  });

  test("remembers 2,000 of its own, and no more", async () => {
    const {seen, it} = seer();
    it.onstate("caught-up");
    application = answer(204);
    for (let n = 0; n <= 2_000; n += 1) await send("/cursors");
    for (const {correlation} of posts) it.onmessage(event({correlation}));
    assert.deepEqual(seen.map(([{correlation}]) => correlation), [posts[0].correlation]);
  });
});

describe("Expiring", () => {
  const typists = (seconds = 5) => {
    const seen = [];
    return {seen, it: new Expiring({seconds, onchange: (values) => seen.push([...values.values()].join(" "))})};
  };

  test("values vanish unless they are set again, and it is told of what changes alone", () => {
    const {seen, it} = typists();
    it.set(1, "Ada");
    mock.timers.tick(3_000);
    it.set(2, "Bob");
    it.set(1, "Ada");
    mock.timers.tick(4_999);
    assert.deepEqual(seen, ["Ada", "Ada Bob"]);
    it.set(1, "Countess");
    assert.deepEqual(seen.splice(0), ["Ada", "Ada Bob", "Countess Bob"]);
    mock.timers.tick(1);
    assert.deepEqual(seen.splice(0), ["Countess"]);
    mock.timers.tick(5_000);
    assert.deepEqual(seen, [""]);
  });

  test("a value can be taken away, once", () => {
    const {seen, it} = typists();
    it.set(1, "Ada");
    it.delete(1);
    it.delete(1);
    it.delete(2);
    mock.timers.tick(60_000);
    assert.deepEqual(seen, ["Ada", ""]);
  });

  test("there are at most 1,000: the oldest makes room", () => {
    const {seen, it} = typists();
    for (let n = 0; n < 1_001; n += 1) it.set(n, n);
    assert.deepEqual([seen.at(-1).split(" ").length, seen.at(-1).split(" ")[0]], [1_000, "1"]);
    it.set(7, "again");
    assert.deepEqual([seen.at(-1).split(" ").length, seen.at(-1).split(" ")[0]], [1_000, "1"]);
  });

  test("onchange is given a map of its own", () => {
    const maps = [];
    const it = new Expiring({seconds: 1, onchange: (values) => maps.push(values)});
    it.set(1, "a");
    maps[0].clear();
    it.set(2, "b");
    assert.deepEqual([...maps[1]], [[1, "a"], [2, "b"]]);
  });

  test("a time that there cannot be is refused", () => {
    for (const seconds of [0, -1, undefined, 2_147_484, Infinity]) assert.throws(() => new Expiring({seconds, onchange() {}}), RangeError, String(seconds));
  });
});

describe("Replies", () => {
  const opened = () => {
    const replies = new Replies();
    replies.onstate("connected");
    return replies;
  };

  test("an answer to the POST is the answer", async () => {
    application = answer(200, {sum: 3});
    assert.deepEqual(await opened().ask("/sums", [1, 2]), {sum: 3});
    assert.deepEqual(posts[0].data, [1, 2]);
  });

  test("after 202 the answer is the update with the correlation, and each question has its own", async () => {
    const replies = opened();
    application = answer(202);
    const [one, other] = [fate(replies.ask("/sums", 1)), fate(replies.ask("/sums", 2))];
    await settle();
    replies.onmessage(event({correlation: "f".repeat(32), answer: "a stranger's"}));
    for (const odd of [null, 7, {answer: 1}]) replies.onmessage(event(odd));
    await settle();
    assert.deepEqual([one, other], [{}, {}]);
    replies.onmessage(event({correlation: posts[1].correlation, answer: "two"}));
    replies.onmessage(event({correlation: posts[0].correlation}));
    replies.onmessage(event({correlation: posts[1].correlation, answer: "again"}));
    await settle();
    assert.deepEqual([one, other], [{value: null}, {value: "two"}]);
  });

  test("the update may be there before the answer to the POST", async () => {
    const replies = opened();
    const seen = fate(replies.ask("/sums"));
    await settle();
    replies.onmessage(event({correlation: posts[0].correlation, answer: 3}));
    await settle();
    assert.deepEqual(seen, {value: 3});
    answer(500)(posts[0]);
    await settle();
    assert.deepEqual(seen, {value: 3});
  });

  test("an error of the application rejects", async () => {
    const replies = opened();
    application = answer(202);
    for (const [error, message] of [["too much", "the application answered: too much"], [{code: 7}, 'the application answered: {"code":7}']]) {
      const seen = fate(replies.ask("/sums"));
      await settle();
      replies.onmessage(event({correlation: posts.at(-1).correlation, error}));
      await settle();
      assert.deepEqual([seen.error.constructor, seen.error.reason, seen.error.answer, seen.error.message], [SendError, "answer", error, message]);
    }
    application = answer(422, {error: "no"});
    await assert.rejects(replies.ask("/sums"), {reason: "status", status: 422, answer: {error: "no"}});
  });

  test("nothing is sent before the stream is open", async () => {
    const replies = new Replies();
    application = answer(200, 1);
    const seen = fate(replies.ask("/sums"));
    await settle();
    replies.onstate("reconnecting");
    await settle();
    assert.equal(posts.length, 0);
    replies.onstate("connected");
    await settle();
    assert.deepEqual([posts.length, seen], [1, {value: 1}]);
  });

  test("a question that nobody answers comes to an end, and is not sent later", async () => {
    const replies = new Replies();
    const seen = fate(replies.ask("/sums", {}, {seconds: 2}));
    await pass(2);
    assert.deepEqual([seen.error.reason, seen.error.message], ["timeout", "no answer came within 2 seconds"]);
    replies.onstate("connected");
    await settle();
    assert.equal(posts.length, 0);
    application = answer(202);
    const other = fate(replies.ask("/sums"));
    await pass(29.9);
    assert.deepEqual(other, {});
    await pass(0.1);
    assert.equal(other.error.reason, "timeout");
    replies.onmessage(event({correlation: posts[0].correlation, answer: "late"}));
  });

  test("a gap ends what waits, since the answer may be in it, and what is asked later is answered", async () => {
    const replies = opened();
    application = answer(202);
    const seen = fate(replies.ask("/sums"));
    await settle();
    replies.onstate("reconnecting");
    await settle();
    assert.deepEqual(seen, {});
    replies.onstate("gap", {reason: "unknown"});
    await settle();
    assert.equal(seen.error.reason, "gap");
    application = answer(200, 1);
    assert.equal(await replies.ask("/sums"), 1);
  });

  test("a stream that is refused answers nothing, until it is opened anew", async () => {
    const replies = new Replies();
    const seen = fate(replies.ask("/sums"));
    replies.onstate("refused", {reason: "forbidden"});
    await settle();
    assert.deepEqual([seen.error.reason, seen.error.message], ["refused", "the hub or the application refuses the stream of the answers (forbidden)"]);
    await assert.rejects(replies.ask("/sums"), {reason: "refused"});
    assert.equal(posts.length, 0);
    application = answer(200, 1);
    replies.onstate("connected");
    assert.equal(await replies.ask("/sums"), 1);
  });

  test("at most 100 questions wait", async () => {
    const replies = opened();
    application = answer(202);
    const all = Array.from({length: 100}, () => fate(replies.ask("/sums")));
    await settle();
    await assert.rejects(replies.ask("/sums"), {reason: "limit"});
    replies.onmessage(event({correlation: posts[0].correlation, answer: 1}));
    all.push(fate(replies.ask("/sums")));
    await settle();
    assert.deepEqual([posts.length, all[0], all[100]], [101, {value: 1}, {}]);
    for (const {correlation} of posts) replies.onmessage(event({correlation, answer: 1}));
  });
});

describe("byType", () => {
  test("passes an event to those of its type, and states to all, one after another's mistake", async () => {
    const seen = [];
    const note = (name) => ({onmessage: ({data}) => seen.push(`${name} ${data}`), onstate: (state, {reason}) => seen.push(`${name} ${state} ${reason}`)});
    const it = byType({typing: note("typing"), broken: {onstate: () => { throw new Error("mine"); }}, cursor: note("cursor"), silent: {}});
    it.onmessage(event(1, "cursor"));
    for (const type of ["typing", "silent", "broken", "unknown", "constructor", "__proto__"]) it.onmessage(event(2, type));
    it.onstate("reconnecting", {reason: "why"});
    assert.deepEqual(seen, ["cursor 1", "typing 2", "typing reconnecting why", "cursor reconnecting why"]);
    assert.deepEqual(reported, ["mine"]);
  });

  test("takes what the others give", async () => {
    const seen = [];
    const replies = new Replies();
    const it = byType({typing: ephemeral(({name}) => seen.push(name)), reply: replies});
    it.onstate("caught-up", {});
    it.onmessage(event({name: "Ada"}, "typing"));
    application = answer(202);
    const sum = fate(replies.ask("/sums"));
    await settle();
    it.onmessage(event({correlation: posts[0].correlation, answer: 3}, "reply"));
    await settle();
    assert.deepEqual([seen, sum], [["Ada"], {value: 3}]);
  });
});
