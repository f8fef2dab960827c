// What a page's MessagePackSource does with a network and time that the test moves.

import {afterEach, beforeEach, describe, test} from "node:test";
import assert from "node:assert/strict";
import {MessagePackSource, pack} from "../../app/assets/javascripts/hikyaku-msgpack.js";
import {TestEnvironment} from "./support/environment.mjs";

const PACK = {"content-type": "application/vnd.msgpack"};

// What was asked for, and what is answered: each time the next of a script.
class Network {
  asked = [];
  script = [];

  fetch(url, init) {
    this.asked.push({url, ...init});
    const next = this.script.shift() ?? (() => new Promise((_, reject) => init.signal.addEventListener("abort", () => reject(new Error("aborted")))));
    return next(init.signal);
  }

  get ids() {
    return this.asked.map(({headers}) => headers["Last-Event-ID"] ?? null);
  }

  // An answer whose body the test writes.
  stream(headers = PACK) {
    const hub = {};
    this.script.push(async (signal) => {
      const body = new ReadableStream({start: (controller) => (hub.controller = controller)});
      signal.addEventListener("abort", () => {
        try { hub.controller.error(new Error("aborted")); } catch {}
      });
      return new Response(body, {headers});
    });
    hub.say = (...values) => values.forEach((value) => hub.controller.enqueue(value instanceof Uint8Array ? value : pack(value)));
    hub.end = () => hub.controller.close();
    hub.break = () => hub.controller.error(new Error("reset"));
    return hub;
  }

  answer(status, headers = {}) {
    this.script.push(async () => new Response(status === 204 ? null : "no", {status, headers}));
  }
}

let [network, environment, seen, states, source] = [];

function open(options = {}) {
  source = new MessagePackSource("/hub?match=a", {
    onmessage: ({id, type, data}) => seen.push([id, type, data]),
    onstate: (state, detail) => states.push([state, ...(detail.reason ? [detail.reason] : [])]),
    ...options,
  }, environment);
  return environment.pass(0);
}

beforeEach(() => {
  network = new Network();
  environment = new TestEnvironment({fetch: (url, init) => network.fetch(url, init)});
  [seen, states] = [[], []];
});

afterEach(() => source.close());

describe("a MessagePackSource", () => {
  test("asks for MessagePack, and for event streams where there is none", async () => {
    await open({token: async () => "t0ken", withCredentials: true, lastEventId: "1"});
    const [{url, headers, credentials, cache}] = network.asked;
    assert.deepEqual([url, credentials, cache], ["https://app.test/hub?match=a", "include", "no-store"]);
    assert.deepEqual(headers, {Accept: "application/vnd.msgpack, text/event-stream;q=0.9", Authorization: "Bearer t0ken", "Last-Event-ID": "1"});
  });

  test("gives events as they come, in pieces cut anywhere", async () => {
    const hub = network.stream();
    await open();
    const bytes = pack(["2", "note", "b"]);
    hub.say(null, ["1", null, "a"], bytes.subarray(0, 4));
    await environment.pass(10);
    assert.deepEqual(seen, [["1", "message", "a"]]);
    hub.say(bytes.subarray(4), [null, null, "c"], true);
    await environment.pass(10);
    assert.deepEqual(seen.slice(1), [["2", "note", "b"], ["2", "message", "c"]]);
    assert.deepEqual(states, [["connected"], ["caught-up"]]);
    assert.equal(source.lastEventId, "2");
  });

  test("reads an event stream where that is what is answered", async () => {
    const hub = network.stream({"content-type": "text/event-stream; charset=utf-8"});
    network.stream();
    await open();
    hub.say(new TextEncoder().encode(":\n\nid: 1\ndata: a\n\nretry: 2000\n\nid: 2\n\n"));
    hub.end();
    await environment.pass(3_001);
    assert.deepEqual([seen, network.ids], [[["1", "message", "a"]], [null, "2"]]);
  });

  test("comes back from the last event, not before the hub wants, and to another pause after each failure", async () => {
    const first = network.stream();
    network.answer(503);
    const second = network.stream();
    await open();
    first.say(["1", null, "a"], 4_000);
    await environment.pass(1);
    first.break();
    await environment.pass(3_999);
    assert.equal(network.asked.length, 1);
    await environment.pass(2_002);
    assert.equal(network.asked.length, 2);
    await environment.pass(6_000);
    assert.equal(network.asked.length, 2, "1.7 times as long");
    await environment.pass(4_500);
    second.say(["2", null, "b"]);
    await environment.pass(1);
    assert.deepEqual([network.ids, seen.map(([id]) => id)], [[null, "1", "1"], ["1", "2"]]);
    assert.deepEqual(states, [["connected"], ["reconnecting", "the connection was lost"], ["reconnecting", "the hub answered 503"], ["connected"]]);
    second.break();
    await environment.pass(6_001);
    assert.equal(network.asked.length, 4, "a stream that opens ends that");
  });

  test("a hub that wants it at once, or never, is not obeyed", async () => {
    const first = network.stream();
    const second = network.stream();
    network.stream();
    await open();
    first.say(0);
    first.end();
    await environment.pass(99);
    assert.equal(network.asked.length, 1);
    await environment.pass(52);
    assert.equal(network.asked.length, 2);
    second.say(2 ** 40);
    second.end();
    await environment.pass(3_600_000 * 1.5 + 1);
    assert.equal(network.asked.length, 3);
  });

  test("a Retry-After is waited for", async () => {
    network.answer(429, {"retry-after": "100"});
    await open();
    await environment.pass(99_999);
    assert.equal(network.asked.length, 1);
    await environment.pass(20_002);
    assert.equal(network.asked.length, 2);
  });

  test("a stream without a word is given up, and one with heartbeats is not", async () => {
    const hub = network.stream();
    await open();
    for (let count = 0; count < 5; count += 1) {
      await environment.pass(50_000);
      hub.say(null);
    }
    await environment.pass(59_000);
    assert.equal(network.asked.length, 1);
    await environment.pass(3_000);
    assert.deepEqual(states, [["connected"], ["reconnecting", "the connection was lost"]]);
  });

  test("a hub that does not answer is asked again", async () => {
    await open();
    await environment.pass(32_000);
    assert.equal(network.asked.length, 2);
  });

  test("what is no MessagePack ends the connection, which is made again from what came before", async () => {
    const hub = network.stream();
    await open();
    hub.say(["1", null, "a"], Uint8Array.of(0x93, 1, 2, 3));
    await environment.pass(2_000);
    assert.deepEqual([seen.length, network.ids, states[1][0]], [1, [null, "1"], "reconnecting"]);
    assert.match(states[1][1], /broken: the id of an event is no text/);
  });

  test("a stream that is broken again and again is asked for less and less, until an event comes", async () => {
    const pauses = [];
    const streams = Array.from({length: 7}, () => network.stream());
    await open({onstate: (state, {pause}) => pause && pauses.push(pause)});
    for (const [index, hub] of streams.entries()) {
      hub.say(10_000, null, ...(index === 3 || index === 5 ? [["1", null, "a"]] : []), ...(index < 5 ? [Uint8Array.of(0xc1)] : []));
      if (index >= 5) hub.end();
      await environment.pass(44_000);
    }
    // 1.7 times as long each time, and half as much again by chance.
    [10_000, 17_000, 28_900, 10_000, 17_000, 10_000, 10_000].forEach((least, index) => assert.ok(pauses[index] >= least && pauses[index] <= least * 1.5, pauses.join(" ")));
  });

  test("an event that is too large is a gap, and is not asked for again", async () => {
    const hub = network.stream();
    await open();
    hub.say(Uint8Array.of(0x93, 0xa1, 0x31, 0xc0, 0xdb, 0x7f, 0xff, 0xff, 0xff));
    await environment.pass(1);
    hub.break();
    await environment.pass(2_000);
    assert.deepEqual([states[1], network.ids], [["gap", "oversize"], [null, "1"]]);
  });

  test("a gap is told once, whether the header says it or the stream or both, and is no message", async () => {
    const gap = (reason, id = null) => [id, "mercure", JSON.stringify({type: "gap", reason, last_event_id: "1"})];
    const hub = network.stream({...PACK, "mercure-last-event-id": "7"});
    const again = network.stream({...PACK, "mercure-last-event-id": "9"});
    await open({lastEventId: "1"});
    hub.say(gap("overrun", "8"), gap("unknown", "9"), ["9", "mercure", '{"type":"subscription"}'], gap("unknown"));
    await environment.pass(1);
    assert.deepEqual(states, [["connected"], ["gap", "unknown"], ["gap", "overrun"], ["gap", "unknown"]]);
    assert.deepEqual([seen.length, source.lastEventId], [1, "9"]);
    hub.end();
    await environment.pass(2_000);
    again.say(gap("unknown"));
    await environment.pass(1);
    assert.deepEqual(states.slice(4), [["reconnecting", "the hub ended the stream"], ["connected"], ["gap", "unknown"]]);
  });

  for (const [status, headers, reason] of [[401, {}, "unauthorized"], [403, {}, "forbidden"], [404, {}, "not_found"], [400, {}, "rejected"], [204, {}, "rejected"], [200, {"content-type": "text/html"}, "rejected"], [200, {"content-type": "application/vnd.msgpack2"}, "rejected"]]) {
    test(`${status} with ${JSON.stringify(headers)} is the end`, async () => {
      network.answer(status, headers);
      await open();
      await environment.pass(100_000);
      assert.deepEqual([states, network.asked.length, source.closed], [[["refused", reason]], 1, true]);
      assert.ok(network.asked[0].signal.aborted, "nobody reads the rest");
    });
  }

  test("a token that is refused is asked for once more", async () => {
    network.answer(401);
    const hub = network.stream();
    network.answer(401);
    network.answer(401);
    let count = 0;
    await open({token: () => `t${(count += 1)}`});
    hub.end();
    await environment.pass(2_000);
    assert.deepEqual(network.asked.map(({headers}) => headers.Authorization), ["Bearer t1", "Bearer t2", "Bearer t3", "Bearer t4"]);
    assert.deepEqual(states.at(-1), ["refused", "unauthorized"]);
  });

  test("what is not ASCII goes into the URL", async () => {
    await open({lastEventId: "ü 1"});
    assert.deepEqual([network.asked[0].url, network.ids], ["https://app.test/hub?match=a&last_event_id=%C3%BC+1", [null]]);
  });

  test("once it is closed nothing comes, and nothing is asked for", async () => {
    const hub = network.stream();
    await open();
    const {signal} = network.asked[0];
    hub.say(["1", null, "a"]);
    source.close();
    await environment.pass(100_000);
    assert.deepEqual([seen, states, network.asked.length, signal.aborted], [[], [["connected"]], 1, true]);
    const closing = new AbortController();
    network.answer(503);
    await open({signal: closing.signal});
    closing.abort();
    await environment.pass(100_000);
    assert.deepEqual([network.asked.length, source.closed], [2, true]);
    await open({signal: closing.signal});
    assert.equal(network.asked.length, 2);
  });

  test("closed by what a page does with an event, it gives no other", async () => {
    const hub = network.stream();
    await open({onmessage: ({id}) => { seen.push(id); source.close(); }});
    hub.say(Uint8Array.from([...pack(["1", null, "a"]), ...pack(["2", null, "b"])]));
    await environment.pass(1);
    assert.deepEqual([seen, source.lastEventId], [["1"], "1"]);
  });

  test("a page's mistake is the page's: the next event comes", async () => {
    const told = [];
    globalThis.reportError = (error) => told.push(error.message);
    const hub = network.stream();
    await open({onmessage: ({data}) => { throw new Error(data); }});
    hub.say(["1", null, "a"], ["2", null, "b"]);
    await environment.pass(1);
    delete globalThis.reportError;
    assert.deepEqual([told, states], [["a", "b"], [["connected"]]]);
  });
});
