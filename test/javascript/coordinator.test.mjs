// The coordinator with its token scopes and connections, between tabs and a hub and a token endpoint in memory.

import {describe, test} from "node:test";
import assert from "node:assert/strict";
import {LIMITS, pauseAfter} from "../../app/assets/javascripts/hikyaku.js";
import {browser, BrowserTab} from "./support/browser.mjs";

const SECOND = 1_000;
const MINUTE = 60 * SECOND;

// A browser with tabs of these topics, all caught up.
async function browsing(topics, settings = {}) {
  const all = browser();
  Object.assign(all.hub, settings);
  const readers = topics.map((topic) => new BrowserTab(all.coordinator).stream(topic, all.hub.lastId));
  await all.environment.pass(2 * SECOND);
  readers.forEach((reader) => assert.equal(reader.state, "caught-up"));
  all.hub.requests.length = all.endpoint.requests.length = 0;
  return {...all, readers};
}

const gets = (hub) => hub.requests.filter((request) => request.method === "GET");
const posts = (hub) => hub.requests.filter((request) => request.method === "POST");
const topicsOf = ({url, body, method}) => (method === "GET" ? url.searchParams : body).getAll("match");

describe("one connection", () => {
  test("serves all tabs and streams, each with its own events, and the token endpoint is asked once for those that come together", async () => {
    const {environment, hub, endpoint, coordinator} = browser();
    const one = new BrowserTab(coordinator);
    const other = new BrowserTab(coordinator);
    const readers = [one.stream("/a"), one.stream("/b"), other.stream("/b"), other.stream("/c")];
    await environment.pass(SECOND);
    hub.publish("/a", "1");
    hub.publish("/b", "2");
    hub.publish("/c", "3");
    hub.publish("/d", "4");
    await environment.pass(SECOND);
    assert.deepEqual(readers.map((reader) => reader.data), [["1"], ["2"], ["2"], ["3"]]);
    assert.deepEqual(readers.map((reader) => reader.states), Array(4).fill(["connected", "caught-up"]));
    assert.equal(endpoint.requests.length, 1);
    assert.deepEqual(gets(hub).map(topicsOf), [["/a", "/b", "/c"]]);
    assert.deepEqual(posts(hub).map(topicsOf), [["/a", "/b", "/c"]], "it asks once where it stands");
    assert.equal(hub.requests[0].headers.Authorization.startsWith("Bearer "), true);
  });

  test("two readers of one stream in a tab get one message between them", async () => {
    const {environment, hub, readers: [reader]} = await browsing(["/a"]);
    const twin = reader.tab.stream("/a", reader.cursor);
    await environment.pass(SECOND);
    hub.publish("/a", "1");
    await environment.pass(SECOND);
    assert.deepEqual(reader.tab.heard.ids, [reader.id, twin.id]);
    assert.deepEqual(twin.data, ["1"]);
  });

  test("is changed for a topic that a tab adds, which gets what it missed since its page was rendered", async () => {
    const {environment, hub, coordinator, readers: [reader]} = await browsing(["/a"]);
    const cursor = hub.publish("/b", "before");
    hub.publish("/b", "1");
    hub.publish("/a", "x");
    hub.publish("/b", "2");
    await environment.pass(SECOND);
    const added = new BrowserTab(coordinator).stream("/b", cursor);
    await environment.pass(SECOND);
    hub.publish("/b", "3");
    await environment.pass(SECOND);
    assert.deepEqual(added.data, ["1", "2", "3"]);
    assert.deepEqual(reader.data, ["x"]);
    assert.equal(gets(hub).length, 0);
    assert.deepEqual(posts(hub).map((request) => [topicsOf(request), request.body.get("last_event_id")]), [[["/a", "/b"], cursor]]);
    assert.deepEqual(reader.states, ["connected", "caught-up"]);
  });

  test("is made anew where the hub cannot change it, and nothing is lost or comes twice", async () => {
    const {environment, hub, coordinator, readers: [reader]} = await browsing(["/a"], {changeable: false});
    const cursor = hub.publish("/b", "before");
    hub.publish("/b", "1");
    const added = new BrowserTab(coordinator).stream("/b", cursor);
    for (let number = 2; number < 40; number += 1) {
      hub.publish("/a", `a${number}`);
      hub.publish("/b", String(number));
      await environment.pass(50);
    }
    await environment.pass(MINUTE);
    assert.deepEqual(added.data, Array.from({length: 39}, (_, index) => String(index + 1)));
    assert.deepEqual(reader.data, Array.from({length: 38}, (_, index) => `a${index + 2}`));
    assert.equal(posts(hub).length, 0);
    assert.equal(hub.streams.size, 1);
  });

  test("loses a topic that nobody reads any more, after a while", async () => {
    const {environment, hub, readers: [, left]} = await browsing(["/a", "/b"]);
    left.leave();
    await environment.pass(500);
    assert.equal(hub.requests.length, 0);
    await environment.pass(5 * SECOND);
    assert.deepEqual(posts(hub).map(topicsOf), [["/a"]]);
  });

  test("loses also what it carried for another, when that has ended", async () => {
    const {environment, hub, coordinator, readers: [reader]} = await browsing(["/a", "/b"]);
    hub.publish("/elsewhere", "x");
    const late = new BrowserTab(coordinator).stream("/a", hub.lastId);
    await environment.pass(2 * SECOND);
    assert.equal(hub.streams.size, 1);
    [reader, late].forEach((each) => each.leave());
    await environment.pass(5 * SECOND);
    assert.deepEqual(topicsOf(posts(hub).at(-1)), ["/b"]);
  });

  test("is left alone by pages that go and come, where the next one was rendered at an event that is known", async () => {
    const {environment, hub, readers: [reader]} = await browsing(["/a"]);
    for (let page = 0; page < 20; page += 1) {
      const cursor = hub.publish("/a", `${page}`);
      await environment.pass(100);
      [...reader.tab.readers.values()].forEach((each) => each.leave());
      hub.publish("/a", `${page} missed`);
      await environment.pass(100);
      const next = reader.tab.stream("/a", cursor);
      await environment.pass(100);
      assert.deepEqual(next.data, [`${page} missed`]);
    }
    assert.equal(hub.requests.length, 0);
  });

  test("ends when the last tab is closed", async () => {
    const {environment, hub, readers: [reader]} = await browsing(["/a"]);
    reader.tab.close();
    await environment.pass(5 * SECOND);
    assert.equal(hub.streams.size, 0);
    assert.equal(hub.requests.length, 0);
  });

  test("ends with the coordinator", async () => {
    const {hub, environment, coordinator} = await browsing(["/a"]);
    coordinator.close();
    await environment.pass(SECOND);
    assert.equal(hub.streams.size, 0);
  });
});

describe("a page that was rendered before it is connected", () => {
  test("gets what it missed, in order, once", async () => {
    const {environment, hub, coordinator} = browser();
    hub.publish("/a", "before");
    const cursor = hub.lastId;
    hub.publish("/a", "1");
    hub.publish("/a", "2");
    const reader = new BrowserTab(coordinator).stream("/a", cursor);
    hub.publish("/a", "3");
    await environment.pass(SECOND);
    hub.publish("/a", "4");
    await environment.pass(SECOND);
    assert.deepEqual(reader.data, ["1", "2", "3", "4"]);
  });

  test("gets it also when another tab has the stream already, which gets nothing twice; and soon one connection is enough", async () => {
    const {environment, hub, coordinator, readers: [reader]} = await browsing(["/a"]);
    hub.publish("/a", "1");
    hub.publish("/elsewhere", "x");
    const cursor = hub.lastId; // of an event that this browser has never seen
    hub.publish("/a", "2");
    await environment.pass(SECOND);
    const late = new BrowserTab(coordinator).stream("/a", cursor);
    await environment.pass(SECOND);
    assert.deepEqual([reader.data, late.data], [["1", "2"], ["2"]]);
    hub.publish("/a", "3");
    await environment.pass(2 * SECOND);
    hub.publish("/a", "4");
    await environment.pass(2 * SECOND);
    assert.deepEqual([reader.data, late.data], [["1", "2", "3", "4"], ["2", "3", "4"]]);
    assert.equal(hub.streams.size, 1);
    assert.deepEqual(late.states, ["connected", "caught-up"]);
  });

  test("does with one connection also where nothing is published: the hub tells that nothing is on its way", async () => {
    const {environment, hub, coordinator} = await browsing(["/a"], {heartbeat: 0});
    hub.publish("/elsewhere", "x");
    const late = new BrowserTab(coordinator).stream("/a", hub.lastId);
    await environment.pass(200);
    assert.equal(hub.streams.size, 2);
    await environment.pass(SECOND);
    assert.equal(hub.streams.size, 1);
    hub.publish("/a", "1");
    await environment.pass(SECOND);
    assert.deepEqual(late.data, ["1"]);
    assert.ok(hub.requests.length <= 4, `${hub.requests.length} requests`);
  });

  test("does with one also where the hub does not tell, after its next comments", async () => {
    const {environment, hub, coordinator} = await browsing(["/a"], {changeable: false});
    hub.publish("/elsewhere", "x");
    const late = new BrowserTab(coordinator).stream("/a", hub.lastId);
    await environment.pass(2 * SECOND);
    assert.equal(hub.streams.size, 2);
    await environment.pass(MINUTE);
    assert.equal(hub.streams.size, 1);
    hub.publish("/a", "1");
    await environment.pass(SECOND);
    assert.deepEqual(late.data, ["1"]);
  });

  test("does with one also where the other connection brings what it had when it was rendered", async () => {
    const {environment, hub, coordinator} = await browsing(["/a"], {changeable: false});
    hub.publish("/b", "before");
    const late = new BrowserTab(coordinator).stream("/b", hub.publish("/elsewhere", "x"));
    await environment.pass(MINUTE);
    assert.equal(hub.streams.size, 1);
    hub.publish("/b", "1");
    await environment.pass(SECOND);
    assert.deepEqual(late.data, ["1"]);
  });

  test("does with one also where what it missed was before all that the other connection had", async () => {
    const {environment, hub, coordinator} = await browsing(["/a"], {changeable: false});
    const cursor = hub.publish("/b", "0");
    hub.publish("/b", "1");
    hub.publish("/a", "2");
    await environment.pass(SECOND);
    const late = new BrowserTab(coordinator).stream("/b", cursor);
    await environment.pass(MINUTE);
    assert.equal(hub.streams.size, 1);
    hub.publish("/b", "3");
    await environment.pass(SECOND);
    assert.deepEqual(late.data, ["1", "3"]);
  });

  test("takes no more than a few connections, however many such pages come at once, and each gets what it missed", async () => {
    const {environment, hub, coordinator} = await browsing(["/a"]);
    const late = Array.from({length: 12}, (_, number) => {
      hub.publish("/elsewhere", "x");
      const reader = new BrowserTab(coordinator).stream("/a", hub.lastId);
      hub.publish("/a", String(number));
      return reader;
    });
    let most = 0;
    for (let moment = 0; moment < 300; moment += 1) {
      await environment.pass(100);
      most = Math.max(most, hub.streams.size);
    }
    hub.publish("/a", "end");
    await environment.pass(SECOND);
    const all = [...Array.from({length: 12}, (_, number) => String(number)), "end"];
    late.forEach((reader, number) => assert.deepEqual(reader.data, all.slice(number)));
    assert.ok(most <= LIMITS.connections, `${most} connections`);
  });

  test("is the reason to end the connection of the page that it replaces", async () => {
    const {environment, hub, readers: [reader]} = await browsing(["/a"]);
    reader.leave();
    hub.publish("/elsewhere", "x");
    reader.tab.stream("/a", hub.lastId);
    await environment.pass(SECOND);
    assert.equal(hub.streams.size, 1);
  });

  test("gets what came before the stream carried its topic, though it names the stream's newest event", async () => {
    const {environment, hub, coordinator} = await browsing(["/a"]);
    const newest = hub.publish("/a", "1");
    hub.publish("/b", "2");
    await environment.pass(SECOND);
    new BrowserTab(coordinator).stream("/b"); // from now on
    await environment.pass(SECOND);
    const late = new BrowserTab(coordinator).stream("/b", newest);
    await environment.pass(SECOND);
    assert.deepEqual(late.data, ["2"]);
  });

  test("gets all of it also when another tab has had more than is kept here", async () => {
    const {environment, hub, coordinator, readers: [reader]} = await browsing(["/a"]);
    const all = Array.from({length: LIMITS.history + 5}, (_, number) => String(number));
    for (const data of all) hub.publish("/a", data);
    await environment.pass(SECOND);
    const late = new BrowserTab(coordinator).stream("/a", "earliest");
    await environment.pass(SECOND);
    assert.deepEqual([reader.data.length, late.data], [all.length, all]);
  });

  test("without a cursor has one soon: the hub tells where it stands, and from there it goes on", async () => {
    for (const others of [["x"], []]) {
      const {environment, hub, coordinator} = browser();
      for (const data of others) hub.publish("/elsewhere", data);
      const reader = new BrowserTab(coordinator).stream("/a");
      await environment.pass(500);
      hub.cut();
      hub.publish("/a", "1");
      await environment.pass(5 * SECOND);
      assert.deepEqual(reader.data, ["1"], `${others.length} events before`);
    }
  });

  test("without a cursor gets what comes from now on", async () => {
    const {environment, hub, coordinator} = await browsing(["/a"]);
    hub.publish("/a", "before");
    await environment.pass(SECOND);
    const [same, other] = ["/a", "/b"].map((topic) => new BrowserTab(coordinator).stream(topic));
    await environment.pass(SECOND);
    hub.publish("/a", "1");
    hub.publish("/b", "2");
    await environment.pass(SECOND);
    assert.deepEqual([same.data, other.data], [["1"], ["2"]]);
    assert.equal(hub.streams.size, 1);
  });
});

describe("a hub that tells when a stream has caught up", () => {
  test("is believed, however long it takes and whatever comes meanwhile", async () => {
    const {environment, hub, coordinator} = browser();
    hub.pending = () => 20 * SECOND;
    const reader = new BrowserTab(coordinator).stream("/a", "earliest");
    for (let second = 0; second < 19; second += 1) {
      hub.publish("/a", String(second));
      await environment.pass(SECOND);
      assert.deepEqual(reader.states, ["connected"], `after ${second} seconds`);
    }
    await environment.pass(2 * SECOND);
    assert.deepEqual(reader.states, ["connected", "caught-up"]);
  });

  test("has it told at once: a silence is not waited for, and none is taken for it", async () => {
    const {environment, hub, coordinator} = browser();
    const reader = new BrowserTab(coordinator).stream("/a", "earliest");
    await environment.pass(100);
    assert.deepEqual(reader.states, ["connected", "caught-up"]);
    hub.pending = () => 2 * SECOND;
    const added = new BrowserTab(coordinator).stream("/b", "earliest");
    await environment.pass(1_500);
    assert.deepEqual(added.states, ["connected"]);
    await environment.pass(SECOND);
    assert.deepEqual(added.states, ["connected", "caught-up"]);
  });

  test("and never does, though it could, is not waited for: some silence will do", async () => {
    const {environment, hub, coordinator} = browser();
    Object.assign(hub, {tells: false, heartbeat: 0});
    const reader = new BrowserTab(coordinator).stream("/a", "earliest");
    await environment.pass(4 * SECOND);
    assert.deepEqual(reader.states, ["connected"]);
    await environment.pass(2 * SECOND);
    assert.deepEqual(reader.states, ["connected", "caught-up"]);
    hub.publish("/elsewhere", "x");
    const late = new BrowserTab(coordinator).stream("/a", hub.lastId);
    await environment.pass(50 * SECOND);
    assert.equal(hub.streams.size, 1);
    hub.publish("/a", "1");
    await environment.pass(SECOND);
    assert.deepEqual([reader.data, late.data], [["1"], ["1"]]);
  });

  test("is not asked by a page that misses nothing", async () => {
    const {environment, coordinator} = browser();
    const reader = new BrowserTab(coordinator).stream("/a");
    await environment.pass(100);
    assert.deepEqual(reader.states, ["connected", "caught-up"]);
  });

  test("of two changes at once is asked again: its comment may have been for the first", async () => {
    const {environment, hub, coordinator} = await browsing(["/a"], {heartbeat: 0});
    hub.pending = () => 300;
    const cursor = hub.publish("/elsewhere", "x");
    const one = new BrowserTab(coordinator).stream("/b", cursor);
    await environment.pass(100);
    const other = new BrowserTab(coordinator).stream("/c", cursor);
    await environment.pass(2 * SECOND);
    assert.deepEqual([one.state, other.state], ["caught-up", "caught-up"]);
    assert.deepEqual(posts(hub).map(topicsOf), [["/a", "/b"], ["/a", "/b", "/c"], ["/a", "/b", "/c"]]);
    await environment.pass(30 * SECOND);
    assert.equal(posts(hub).length, 3, "it is asked no more");
    assert.equal(hub.requests.length, 3);
  });

  test("says with it that an added topic is taken up with the others from then on", async () => {
    const {environment, hub, coordinator} = await browsing(["/a"], {heartbeat: 0});
    const added = new BrowserTab(coordinator).stream("/b", hub.publish("/b", "0"));
    hub.publish("/a", "1");
    await environment.pass(500);
    hub.cut();
    hub.publish("/b", "2");
    await environment.pass(5 * SECOND);
    assert.deepEqual(gets(hub).map(topicsOf), [["/a", "/b"]]);
    assert.equal(posts(hub).length, 1);
    assert.deepEqual(added.data, ["2"]);
  });

  test("says with it that of a topic that was removed nothing more comes: it may be added again", async () => {
    const {environment, hub, coordinator, readers: [, left]} = await browsing(["/a", "/b"], {heartbeat: 0});
    left.leave();
    await environment.pass(3 * SECOND);
    hub.publish("/b", "missed");
    const cursor = hub.publish("/elsewhere", "x");
    hub.publish("/b", "1");
    const back = new BrowserTab(coordinator).stream("/b", cursor);
    await environment.pass(500);
    assert.deepEqual(back.data, ["1"]);
    assert.equal(gets(hub).length, 0);
    assert.equal(hub.streams.size, 1);
  });

  test("is asked for nothing that it would go back for where topics begin now", async () => {
    const {environment, hub, coordinator} = await browsing(["/a"]);
    hub.publish("/b", "before");
    const reader = new BrowserTab(coordinator).stream("/b");
    await environment.pass(SECOND);
    hub.publish("/b", "1");
    await environment.pass(SECOND);
    assert.deepEqual(reader.data, ["1"]);
    assert.deepEqual(posts(hub).map((request) => request.body.has("last_event_id")), [false, true]);
  });
});

describe("a connection that is lost", () => {
  test("is made again from the last event, and pages are told", async () => {
    const {environment, hub, readers: [reader]} = await browsing(["/a"]);
    const last = hub.publish("/a", "1");
    await environment.pass(SECOND);
    hub.cut();
    hub.publish("/a", "2");
    await environment.pass(5 * SECOND);
    assert.deepEqual(reader.data, ["1", "2"]);
    assert.equal(gets(hub)[0].headers["Last-Event-ID"], last);
    assert.deepEqual(reader.states, ["connected", "caught-up", "reconnecting", "connected", "caught-up"]);
    assert.match(reader.details[2].reason, /lost/);
  });

  test("in the middle of an event gives the event once", async () => {
    const {environment, hub, readers: [reader]} = await browsing(["/a"]);
    for (const stream of hub.streams) stream.send("event: /a\nid: half\ndata: half of");
    await environment.pass(SECOND);
    hub.cut();
    hub.publish("/a", "whole");
    await environment.pass(5 * SECOND);
    assert.deepEqual(reader.data, ["whole"]);
  });

  test("while another takes its place loses nothing of a topic that was added to it meanwhile", async () => {
    const {environment, hub, coordinator, readers: [reader]} = await browsing(["/a"], {heartbeat: 0});
    const added = new BrowserTab(coordinator).stream("/b", hub.publish("/b", "0"));
    await environment.pass(25);
    reader.tab.say({type: "check", reason: "online"});
    hub.delay = () => 50;
    await environment.pass(500);
    hub.publish("/b", "1");
    await environment.pass(SECOND);
    assert.deepEqual(added.data, ["1"]);
    assert.equal(gets(hub).length, 1);
  });

  test("is not taken up again from before what a page had that came to it", async () => {
    const {environment, hub, coordinator} = await browsing(["/a"], {heartbeat: 0});
    hub.delay = () => 200;
    hub.publish("/a", "a");
    const cursor = hub.publish("/b", "before");
    hub.delay = () => 10;
    const late = new BrowserTab(coordinator).stream("/b", cursor);
    await environment.pass(400);
    hub.cut();
    await environment.pass(5 * SECOND);
    hub.publish("/b", "1");
    await environment.pass(SECOND);
    assert.deepEqual(late.data, ["1"]);
  });

  test("is not taken to stand where a change began, if something has come since", async () => {
    const {environment, hub, coordinator, readers: [reader]} = await browsing(["/a"], {heartbeat: 0});
    const position = hub.publish("/elsewhere", "x");
    const answer = hub.answer.bind(hub);
    hub.answer = async (url, init) => {
      const answered = await answer(url, init);
      if (init.method === "POST") await environment.wait(500);
      return answered;
    };
    new BrowserTab(coordinator).stream("/b", position);
    await environment.pass(200);
    hub.publish("/a", "1");
    await environment.pass(2 * SECOND);
    const late = new BrowserTab(coordinator).stream("/a", position);
    await environment.pass(2 * SECOND);
    assert.deepEqual([reader.data, late.data], [["1"], ["1"]]);
  });

  test("is not taken to stand where a change began for the topic that was added, either", async () => {
    const {environment, hub, coordinator} = await browsing(["/a"], {heartbeat: 0});
    hub.pending = () => 300;
    const position = hub.publish("/elsewhere", "x");
    const added = new BrowserTab(coordinator).stream("/b", position);
    await environment.pass(100);
    hub.publish("/b", "1");
    await environment.pass(2 * SECOND);
    const late = new BrowserTab(coordinator).stream("/b", position);
    await environment.pass(2 * SECOND);
    assert.deepEqual([added.data, late.data], [["1"], ["1"]]);
  });

  test("while added topics catch up loses nothing, and repeats nothing", async () => {
    const {environment, hub, coordinator, readers: [reader]} = await browsing(["/a"]);
    const cursor = hub.publish("/b", "0");
    for (let number = 1; number < 10; number += 1) hub.publish(number % 2 ? "/a" : "/b", String(number));
    hub.delay = () => 200;
    const added = new BrowserTab(coordinator).stream("/b", cursor);
    for (let cut = 0; cut < 8; cut += 1) {
      await environment.pass(650);
      hub.publish("/a", `a${cut}`);
      hub.publish("/b", `b${cut}`);
      hub.cut();
    }
    await environment.pass(MINUTE);
    const cuts = Array.from({length: 8}, (_, cut) => cut);
    assert.deepEqual(added.data, ["2", "4", "6", "8", ...cuts.map((cut) => `b${cut}`)]);
    assert.deepEqual(reader.data, ["1", "3", "5", "7", "9", ...cuts.map((cut) => `a${cut}`)]);
  });

  test("is not made again before the time that the hub has told", async () => {
    const {environment, hub} = await browsing(["/a"]);
    for (const stream of hub.streams) stream.send("retry: 4000\n\n");
    await environment.pass(SECOND);
    const lost = environment.now();
    hub.cut();
    await environment.pass(10 * SECOND);
    const again = hub.requests[0].at - lost;
    assert.ok(again >= 4_000 && again <= 6_000, `${again} ms`);
  });

  test("to a hub that stays away is tried less and less often, and made as soon as it is back", async () => {
    const {environment, hub, readers: [reader]} = await browsing(["/a"]);
    hub.up = false;
    hub.cut();
    await environment.pass(10 * MINUTE);
    const times = hub.requests.map((request) => request.at);
    const pauses = times.slice(1).map((time, index) => time - times[index]);
    assert.ok(pauses[0] < 3_000 && Math.min(...pauses.slice(10)) > 14_000 && Math.max(...pauses) <= 46_000, String(pauses));
    assert.ok(new Set(pauses.slice(10).map(Math.round)).size > 5, "they differ");
    assert.equal(reader.state, "reconnecting");
    hub.publish("/a", "missed");
    hub.up = true;
    await environment.pass(MINUTE);
    assert.deepEqual(reader.data, ["missed"]);
    assert.equal(reader.state, "caught-up");
  });

  test("waits for Retry-After", async () => {
    for (const [value, least] of [["120", 120], [new Date(1_700_000_000_000 + 200 * SECOND).toUTCString(), 190]]) {
      const {environment, hub} = await browsing(["/a"]);
      Object.assign(hub, {refusing: 503, headers: {"retry-after": value}});
      hub.cut();
      await environment.pass(10 * MINUTE);
      const [first, second] = hub.requests.map((request) => request.at);
      assert.ok(second - first >= least * SECOND && second - first <= least * 1.3 * SECOND, `${second - first} ms`);
    }
  });

  test("is noticed when nothing is heard for too long", async () => {
    const {environment, hub, readers: [reader]} = await browsing(["/a"]);
    hub.delay = () => 1e9; // nothing arrives any more, and nobody says so
    await environment.pass(90 * SECOND);
    hub.delay = () => 10;
    hub.publish("/a", "1");
    await environment.pass(90 * SECOND);
    assert.deepEqual(reader.data, ["1"]);
    assert.ok(reader.states.includes("reconnecting"));
  });

  test("is not supposed of a hub that never sends comments more and more often", async () => {
    const {environment, hub} = await browsing(["/a"], {heartbeat: 0});
    await environment.pass(10 * MINUTE - SECOND);
    const times = gets(hub).map((request) => request.at);
    assert.ok(times.length >= 2 && times.length <= 4, String(times));
  });

  test("by a wish of the hub goes on in the same way", async () => {
    const {environment, hub, readers: [reader]} = await browsing(["/a"]);
    hub.publish("/a", "1");
    hub.finish();
    hub.publish("/a", "2");
    await environment.pass(5 * SECOND);
    assert.deepEqual(reader.data, ["1", "2"]);
  });

  test("that answers with something else than a stream is tried again", async () => {
    const {environment, hub, readers: [reader]} = await browsing(["/a"]);
    hub.refusing = 200;
    hub.cut();
    await environment.pass(5 * SECOND);
    hub.refusing = null;
    await environment.pass(MINUTE);
    assert.equal(reader.state, "caught-up");
  });
});

describe("a reason to doubt the connection", () => {
  test("online makes another before the first is broken", async () => {
    const {environment, hub, readers: [reader]} = await browsing(["/a"]);
    reader.tab.say({type: "check", reason: "online"});
    await environment.pass(15);
    assert.equal(hub.streams.size, 2);
    hub.publish("/a", "1");
    await environment.pass(SECOND);
    assert.equal(hub.streams.size, 1);
    assert.deepEqual(reader.data, ["1"]);
    assert.equal(reader.states.includes("reconnecting"), false);
  });

  test("visible does only where nothing was heard for a while", async () => {
    const {environment, hub, readers: [reader]} = await browsing(["/a"], {heartbeat: 0});
    reader.tab.say({type: "check", reason: "visible"});
    await environment.pass(SECOND);
    assert.equal(hub.requests.length, 0);
    await environment.pass(30 * SECOND);
    reader.tab.say({type: "check", reason: "visible"});
    await environment.pass(SECOND);
    assert.equal(gets(hub).length, 1);
  });

  test("tries a lost connection at once, but a storm of reasons does not become a storm of requests", async () => {
    const {environment, hub, readers: [reader]} = await browsing(["/a"]);
    hub.up = false;
    hub.cut();
    await environment.pass(3 * MINUTE);
    hub.requests.length = 0;
    for (let count = 0; count < 100; count += 1) {
      reader.tab.say({type: "check", reason: "visible"});
      await environment.pass(20);
    }
    assert.ok(hub.requests.length >= 1 && hub.requests.length <= 4, `${hub.requests.length} requests`);
  });

  test("is that the machine slept", async () => {
    const {environment, hub, endpoint, readers: [reader]} = await browsing(["/a"]);
    hub.delay = () => 1e9; // what was sent is not there any more when it wakes
    await environment.sleep(8 * 60 * MINUTE);
    hub.delay = () => 10;
    hub.streams.clear();
    hub.publish("/a", "while it slept");
    await environment.pass(10 * SECOND);
    assert.deepEqual(reader.data, ["while it slept"]);
    assert.equal(endpoint.requests.length, 1, "the token had expired");
    assert.ok(endpoint.requests[0].at <= hub.requests.find((request) => request.method === "GET").at);
  });
});

describe("the token", () => {
  test("is refreshed in the last fifth of its life, on the live stream", async () => {
    const moments = [];
    for (let seed = 1; seed <= 12; seed += 1) {
      const {environment, hub, endpoint, coordinator} = browser({seed});
      const reader = new BrowserTab(coordinator).stream("/a", "earliest");
      await environment.pass(20 * MINUTE);
      hub.publish("/a", "1");
      await environment.pass(SECOND);
      assert.deepEqual(reader.data, ["1"]);
      assert.equal(gets(hub).length, 1);
      assert.equal(posts(hub).length, endpoint.requests.length - 1);
      moments.push((endpoint.requests[1].at - endpoint.requests[0].at) / (endpoint.lifetime * SECOND));
    }
    assert.ok(Math.min(...moments) >= 0.8 && Math.max(...moments) < 0.96, String(moments));
    assert.ok(Math.max(...moments) - Math.min(...moments) > 0.05, "not all at once");
  });

  test("is refreshed where the hub cannot change streams, too", async () => {
    const {environment, hub, readers: [reader]} = await browsing(["/a"], {changeable: false});
    await environment.pass(12 * MINUTE);
    hub.publish("/a", "1");
    await environment.pass(SECOND);
    assert.deepEqual(reader.data, ["1"]);
    assert.equal(reader.states.includes("reconnecting"), false);
  });

  test("lives as long as the server says, whatever the browser's clock shows", async () => {
    for (const clock of [-7_200, 7_200]) {
      const {environment, endpoint, coordinator} = browser();
      endpoint.clock = clock;
      new BrowserTab(coordinator).stream("/a");
      await environment.pass(7 * MINUTE);
      assert.equal(endpoint.requests.length, 1, `a clock that is ${clock} s off`);
      await environment.pass(4 * MINUTE);
      assert.equal(endpoint.requests.length, 2);
    }
  });

  test("of somebody else takes another connection", async () => {
    const {environment, hub, endpoint, readers: [reader]} = await browsing(["/a"]);
    endpoint.subject = "somebody else";
    await environment.pass(11 * MINUTE);
    hub.publish("/a", "1");
    await environment.pass(SECOND);
    assert.deepEqual(reader.data, ["1"]);
    assert.equal(gets(hub).length, 1);
  });

  test("that the hub does not take is asked for again, at first at once, and then less and less often", async () => {
    const {environment, hub, endpoint, readers: [reader]} = await browsing(["/a"]);
    hub.refusing = 401;
    hub.cut();
    await environment.pass(5 * MINUTE);
    assert.ok(endpoint.requests.length >= 4 && endpoint.requests.length < 30, `${endpoint.requests.length} tokens`);
    assert.equal(environment.warnings.length, 1);
    hub.refusing = null;
    await environment.pass(MINUTE);
    assert.equal(reader.state, "caught-up");
  });

  test("that is refused for a change is asked for again, and nothing is lost", async () => {
    const {environment, hub, coordinator} = await browsing(["/a"]);
    const cursor = hub.publish("/b", "0");
    hub.publish("/b", "1");
    hub.refusing = 401;
    const added = new BrowserTab(coordinator).stream("/b", cursor);
    await environment.pass(SECOND);
    hub.refusing = null;
    await environment.pass(MINUTE);
    assert.deepEqual(added.data, ["1"]);
    assert.equal(hub.streams.size, 1);
  });
});

describe("a change of the stream", () => {
  test("of which nobody knows whether it was made takes another connection, and nothing is lost", async () => {
    for (const outcome of ["lost answer", 502, 404]) {
      const {environment, hub, coordinator, readers: [reader]} = await browsing(["/a"]);
      const answer = hub.answer.bind(hub);
      hub.answer = async (url, init) => {
        if (init.method !== "POST") return answer(url, init);
        if (outcome !== 404) await answer(url, init);
        if (outcome === "lost answer") throw new TypeError("network error");
        return {status: outcome, headers: new Headers()};
      };
      const cursor = hub.publish("/b", "0");
      hub.publish("/b", "1");
      const added = new BrowserTab(coordinator).stream("/b", cursor);
      await environment.pass(200);
      hub.answer = answer;
      hub.publish("/a", "a");
      hub.publish("/b", "2");
      await environment.pass(MINUTE);
      assert.deepEqual([reader.data, added.data], [["a"], ["1", "2"]], outcome);
      assert.equal(reader.states.includes("reconnecting"), false);
    }
  });

  test("that must wait is made later", async () => {
    const {environment, hub, coordinator} = await browsing(["/a"]);
    Object.assign(hub, {refusing: 429, headers: {"retry-after": "3"}});
    const cursor = hub.publish("/b", "0");
    hub.publish("/b", "1");
    const added = new BrowserTab(coordinator).stream("/b", cursor);
    await environment.pass(SECOND);
    Object.assign(hub, {refusing: null});
    assert.equal(posts(hub).length, 1);
    await environment.pass(SECOND);
    assert.equal(posts(hub).length, 1);
    await environment.pass(5 * SECOND);
    assert.deepEqual(added.data, ["1"]);
  });

  test("tells where the log is: a quiet stream is taken up from there, and not from where its page was rendered", async () => {
    const {environment, hub, endpoint, readers: [reader]} = await browsing(["/a"]);
    endpoint.lifetime = 60;
    for (let count = 0; count < 1_000; count += 1) hub.publish("/elsewhere", "x");
    await environment.pass(15 * MINUTE);
    for (let count = 0; count < 10; count += 1) hub.publish("/elsewhere", "x");
    hub.history = 100;
    hub.cut();
    await environment.pass(5 * SECOND);
    assert.equal(reader.states.includes("gap"), false);
    assert.equal(reader.state, "caught-up");
  });
});

describe("a name", () => {
  test("that is refused is told why, and the others go on", async () => {
    const {environment, hub, endpoint, coordinator} = browser();
    endpoint.refused = {"/b": "expired", "/c": "forbidden"};
    const tab = new BrowserTab(coordinator);
    const readers = ["/a", "/b", "/c"].map((topic) => tab.stream(topic));
    await environment.pass(SECOND);
    hub.publish("/a", "1");
    await environment.pass(SECOND);
    assert.deepEqual(readers.map((reader) => reader.states), [["connected", "caught-up"], ["refused"], ["refused"]]);
    assert.deepEqual(readers.slice(1).map((reader) => reader.details[0].reason), ["expired", "forbidden"]);
    assert.deepEqual(readers[0].data, ["1"]);
    assert.equal(endpoint.requests.length, 1, "it is not asked for again");
  });

  test("for which the application fails is asked for again, less and less often, and the others go on meanwhile", async () => {
    const {environment, hub, endpoint, coordinator} = browser();
    endpoint.failing = ["/b"];
    const [one, other] = ["/a", "/b"].map((topic) => new BrowserTab(coordinator).stream(topic, hub.lastId));
    await environment.pass(MINUTE);
    hub.publish("/a", "1");
    hub.publish("/b", "1");
    await environment.pass(SECOND);
    assert.deepEqual([one.states, one.data, other.data], [["connected", "caught-up"], ["1"], []]);
    assert.deepEqual([new Set(other.states), other.details[0].reason, other.details[0].status], [new Set(["reconnecting"]), "the application failed", 500]);
    assert.ok(endpoint.requests.length > 2 && endpoint.requests.length < 15, `it asked ${endpoint.requests.length} times`);
    endpoint.failing = [];
    await environment.pass(MINUTE);
    assert.deepEqual([other.state, other.data, one.states], ["caught-up", ["1"], ["connected", "caught-up"]]);
    const {length} = endpoint.requests;
    await environment.pass(MINUTE);
    assert.equal(endpoint.requests.length, length);
  });

  test("for which the application fails when the token is refreshed goes on later where it was, in all tabs, as do the others", async () => {
    const {environment, hub, endpoint, readers} = await browsing(["/a", "/b", "/b"]);
    endpoint.failing = ["/b"];
    await environment.pass(11 * MINUTE);
    ["/a", "/b"].forEach((topic) => hub.publish(topic, "1"));
    await environment.pass(SECOND);
    assert.deepEqual(readers.map(({state, data}) => [state, data]), [["caught-up", ["1"]], ["reconnecting", []], ["reconnecting", []]]);
    endpoint.failing = [];
    await environment.pass(MINUTE);
    ["/a", "/b"].forEach((topic) => hub.publish(topic, "2"));
    await environment.pass(SECOND);
    assert.deepEqual(readers.map(({state, data}) => [state, data]), Array(3).fill(["caught-up", ["1", "2"]]));
    assert.deepEqual(readers[0].states, ["connected", "caught-up"]);
  });

  test("that is refused when the token is refreshed gets nothing more", async () => {
    const {environment, hub, endpoint, readers: [one, other]} = await browsing(["/a", "/b"]);
    endpoint.refused = {"/b": "expired"};
    await environment.pass(11 * MINUTE);
    hub.publish("/a", "1");
    hub.publish("/b", "1");
    await environment.pass(SECOND);
    assert.deepEqual([one.data, other.data], [["1"], []]);
    assert.equal(other.state, "refused");
    assert.deepEqual(topicsOf(posts(hub).at(-1)), ["/a"]);
  });

  test("that has expired takes no others of its topic along that are good, though it came last", async () => {
    const {environment, hub, endpoint, coordinator} = browser();
    const want = {endpoint: endpoint.url};
    const [newer, older, apart] = ["signed:/a:newer", "signed:/a:older", "signed:/b:1"].map((name) => new BrowserTab(coordinator).join(name, hub.lastId, want));
    await environment.pass(2 * SECOND);
    endpoint.refused = {"signed:/a:older": "expired"};
    endpoint.requests.length = 0;
    await environment.pass(10 * MINUTE);
    assert.deepEqual(endpoint.requests.map(({names}) => names.length), [2, 3], "each is asked about for itself, once");
    hub.publish("/a", "1");
    hub.publish("/b", "1");
    await environment.pass(SECOND);
    assert.deepEqual([newer, older, apart].map(({state, data}) => [state, data]), [["caught-up", ["1"]], ["refused", []], ["caught-up", ["1"]]]);
    assert.ok(![...newer.states, ...apart.states].includes("reconnecting"));
    await environment.pass(9 * MINUTE);
    assert.deepEqual(endpoint.requests.at(-1).names, ["signed:/a:newer", "signed:/b:1"]);
    endpoint.refused = {"/a": "expired"};
    await environment.pass(10 * MINUTE);
    assert.deepEqual([newer.state, apart.state], ["refused", "caught-up"]);
  });

  test("of a topic that nobody may follow any more is refused with the others, and the token endpoint is asked once", async () => {
    const {environment, endpoint, coordinator} = browser();
    const readers = ["signed:/a:1", "signed:/a:2"].map((name) => new BrowserTab(coordinator).join(name, null, {endpoint: endpoint.url}));
    await environment.pass(2 * SECOND);
    endpoint.refused = {"/a": "forbidden"};
    endpoint.requests.length = 0;
    await environment.pass(10 * MINUTE);
    assert.deepEqual([readers.map(({state}) => state), endpoint.requests.length], [["refused", "refused"], 1]);
  });

  test("whose topic the application chooses is asked about again when a page comes with it, and follows what it stands for then", async () => {
    const {environment, hub, endpoint, coordinator} = browser();
    const want = {endpoint: endpoint.url};
    endpoint.chosen = {"signed:mine": "/a"};
    const first = new BrowserTab(coordinator).join("signed:mine", null, want);
    const plain = new BrowserTab(coordinator).join("signed:/a:1", null, want);
    await environment.pass(2 * SECOND);
    endpoint.chosen = {"signed:mine": "/b"};
    const second = new BrowserTab(coordinator).join("signed:mine", hub.lastId, want);
    await environment.pass(2 * SECOND);
    assert.deepEqual(endpoint.requests.at(-1).names.toSorted(), ["signed:/a:1", "signed:mine"]);
    for (const topic of ["/a", "/b"]) hub.publish(topic, topic);
    await environment.pass(SECOND);
    assert.deepEqual([first, plain, second].map(({data}) => data), [["/b"], ["/a"], ["/b"]]);
    const asked = endpoint.requests.length;
    await environment.pass(5 * MINUTE);
    assert.equal(endpoint.requests.length, asked, "nobody has come, and the token is good");
    endpoint.chosen = {"signed:mine": "/a"};
    await environment.pass(6 * MINUTE);
    for (const topic of ["/a", "/b"]) hub.publish(topic, `${topic} again`);
    await environment.pass(SECOND);
    assert.deepEqual([first, plain, second].map(({data}) => data), [["/b", "/a again"], ["/a", "/a again"], ["/b", "/a again"]]);
  });

  test("whose topic the application chooses takes no others of its topic along, nor they it", async () => {
    const {environment, hub, endpoint, coordinator} = browser();
    const names = ["signed:/a:1", "signed:/a:2", "signed:mine", "signed:yours"];
    endpoint.chosen = {"signed:mine": "/a", "signed:yours": "/a"};
    const readers = names.map((name) => new BrowserTab(coordinator).join(name, null, {endpoint: endpoint.url}));
    await environment.pass(2 * SECOND);
    const statesAfter = async (refused) => {
      endpoint.refused = refused;
      endpoint.requests.length = 0;
      await environment.pass(10 * MINUTE);
      return [...endpoint.requests.map(({names: asked}) => asked), readers.map(({state}) => state === "refused")];
    };
    assert.deepEqual(await statesAfter({"signed:yours": "expired"}), [["signed:/a:2", "signed:mine", "signed:yours"], [false, false, false, true]]);
    assert.deepEqual(await statesAfter({"signed:/a:2": "forbidden"}), [["signed:/a:2", "signed:mine"], [true, true, false, true]]);
    hub.publish("/a", "1");
    await environment.pass(SECOND);
    assert.deepEqual(readers.map(({data}) => data), [[], [], ["1"], []]);
  });

  test("is refused with all others when the token endpoint is shut", async () => {
    for (const [status, reason] of [[401, "unauthorized"], [403, "forbidden"], [404, "not_found"], [422, "rejected"], [0, "rejected"]]) {
      const {environment, hub, endpoint, coordinator} = browser();
      endpoint.refusing = status || 302;
      const reader = new BrowserTab(coordinator).stream("/a");
      await environment.pass(MINUTE);
      assert.deepEqual([reader.states, reader.details[0].reason], [["refused"], reason]);
      assert.equal(endpoint.requests.length, 1);
      assert.equal(hub.requests.length, 0);
    }
  });

  test("waits for a token endpoint that does not answer, or says later", async () => {
    for (const trouble of [{up: false}, {refusing: 503}, {refusing: 429, headers: {"retry-after": "20"}}]) {
      const {environment, hub, endpoint, coordinator} = browser();
      Object.assign(endpoint, trouble);
      const reader = new BrowserTab(coordinator).stream("/a", "earliest");
      await environment.pass(10 * SECOND);
      assert.deepEqual(reader.state, "reconnecting");
      if (trouble.headers) assert.equal(endpoint.requests.length, 1);
      else assert.ok(endpoint.requests.length > 1);
      hub.publish("/a", "1");
      Object.assign(endpoint, {up: true, refusing: null});
      await environment.pass(MINUTE);
      assert.deepEqual(reader.data, ["1"]);
    }
  });

  test("of which there are more than one token grants is one of another's", async () => {
    const {environment, hub, endpoint, coordinator} = browser();
    const tab = new BrowserTab(coordinator);
    const readers = Array.from({length: 130}, (_, number) => tab.stream(`/a/${number}`, "earliest"));
    await environment.pass(MINUTE);
    readers.forEach((_, number) => hub.publish(`/a/${number}`, String(number)));
    await environment.pass(SECOND);
    readers.forEach((reader, number) => assert.deepEqual(reader.data, [String(number)]));
    assert.ok(endpoint.requests.every((request) => request.names.length <= LIMITS.names));
    assert.equal(hub.streams.size, 2);
  });

  test("that is one too many for the token endpoint goes to another token", async () => {
    const {environment, hub, endpoint, coordinator} = browser();
    endpoint.most = 7;
    const tab = new BrowserTab(coordinator);
    const readers = Array.from({length: 20}, (_, number) => tab.stream(`/a/${number}`, "earliest"));
    await environment.pass(MINUTE);
    readers.forEach((_, number) => hub.publish(`/a/${number}`, String(number)));
    await environment.pass(SECOND);
    readers.forEach((reader, number) => assert.deepEqual(reader.data, [String(number)]));
  });

  test("is refused alone, too, and no token comes with it", async () => {
    const {environment, hub, endpoint, coordinator} = browser();
    endpoint.refused = {"/a": "invalid"};
    const reader = new BrowserTab(coordinator).stream("/a");
    await environment.pass(MINUTE);
    assert.deepEqual([reader.state, reader.details[0].reason], ["refused", "invalid"]);
    assert.equal(hub.requests.length, 0);
    assert.equal(endpoint.requests.length, 1);
  });

  test("of a long topic has room in the address", async () => {
    const {environment, hub, coordinator} = browser();
    const tab = new BrowserTab(coordinator);
    const readers = Array.from({length: 90}, (_, number) => tab.stream(`/${"long".repeat(50)}/${number}`, "earliest"));
    await environment.pass(MINUTE);
    readers.forEach((_, number) => hub.publish(`/${"long".repeat(50)}/${number}`, String(number)));
    await environment.pass(SECOND);
    readers.forEach((reader, number) => assert.deepEqual(reader.data, [String(number)]));
    hub.requests.forEach((request) => assert.ok(request.url.href.length <= LIMITS.queryLength + 100));
  });

  test("that is new for a topic that is known brings a new token, and no change of the streams", async () => {
    const {environment, endpoint, coordinator, hub} = await browsing(["/a"]);
    new BrowserTab(coordinator).join("signed:/a:later", hub.lastId, {endpoint: endpoint.url});
    await environment.pass(SECOND);
    assert.equal(endpoint.requests.length, 1);
    assert.equal(hub.requests.length, 0);
    assert.equal(new Set(endpoint.requests[0].names.map((name) => name.split(":")[1])).size, 1);
  });
});

describe("a gap", () => {
  test("is told to those who came when there was no event yet, and were away while one was published and the hub restarted", async () => {
    for (const cursor of [null, "#beginning"]) {
      const {environment, hub, coordinator} = browser();
      const reader = new BrowserTab(coordinator).stream("/a", cursor);
      await environment.pass(SECOND);
      hub.up = false;
      hub.cut();
      hub.publish("/a", "lost");
      hub.restart();
      hub.up = true;
      await environment.pass(10 * SECOND);
      hub.publish("/a", "1");
      await environment.pass(SECOND);
      assert.deepEqual([reader.data, reader.states.filter((state) => state === "gap")], [["1"], ["gap"]], String(cursor));
    }
  });

  test("is told to those who come from an event that the hub has forgotten, and they go on", async () => {
    const {environment, hub, coordinator} = browser();
    const reader = new BrowserTab(coordinator).stream("/a", "#unknown");
    await environment.pass(SECOND);
    hub.publish("/a", "1");
    await environment.pass(SECOND);
    assert.deepEqual(reader.states, ["connected", "gap"]);
    assert.deepEqual(reader.details[1], {reason: "unknown", lastEventId: "#unknown"});
    assert.deepEqual(reader.data, ["1"]);
  });

  test("is told when the hub was restarted, once", async () => {
    const {environment, hub, readers: [reader]} = await browsing(["/a"]);
    hub.publish("/a", "1");
    await environment.pass(SECOND);
    hub.cut();
    hub.log = [];
    await environment.pass(5 * SECOND);
    assert.deepEqual(reader.states, ["connected", "caught-up", "reconnecting", "connected", "gap"]);
  });

  test("of an added topic is nobody else's", async () => {
    const {environment, hub, coordinator, readers: [reader]} = await browsing(["/a"]);
    const added = new BrowserTab(coordinator).stream("/b", "#unknown");
    await environment.pass(SECOND);
    hub.publish("/a", "1");
    hub.publish("/b", "2");
    await environment.pass(SECOND);
    assert.deepEqual(added.states, ["connected", "caught-up", "gap"].filter((state) => added.states.includes(state)));
    assert.ok(added.states.includes("gap"));
    assert.equal(reader.states.includes("gap"), false);
    assert.deepEqual([reader.data, added.data], [["1"], ["2"]]);
  });

  test("of a reader that was too slow is told to those whose events may be missing", async () => {
    const {environment, hub, readers: [one, other]} = await browsing(["/a", "/b"]);
    const document = {type: "gap", reason: "overrun", last_event_id: "x", matches: [{match: "/a", match_type: "exact"}]};
    for (const stream of hub.streams) stream.send(`event: mercure\nid: #9\ndata: ${JSON.stringify(document)}\n\n`);
    await environment.pass(SECOND);
    assert.deepEqual([one.state, other.state], ["gap", "caught-up"]);
    assert.deepEqual(one.details.at(-1), {reason: "overrun", lastEventId: "x"});
  });

  test("is told to each who comes from there, also while the stream of the first still runs", async () => {
    for (const settings of [{}, {changeable: false}, {tells: false}, {changeable: false, announces: false}]) {
      const {environment, hub, coordinator} = browser();
      Object.assign(hub, settings);
      const tab = new BrowserTab(coordinator);
      const readers = [tab.stream("/a", "#unknown")];
      for (const another of [tab, new BrowserTab(coordinator), tab]) {
        await environment.pass(MINUTE);
        readers.push(another.stream("/a", "#unknown"));
      }
      await environment.pass(MINUTE);
      hub.publish("/a", "1");
      await environment.pass(SECOND);
      assert.deepEqual(readers.map(({data, state}) => [data, state]), Array(4).fill([["1"], "gap"]), JSON.stringify(settings));
      assert.equal(hub.streams.size, 1);
    }
  });

  test("is told to those, too, who come later from an event before it, of whichever topic", async () => {
    for (const topic of ["/a", "/b"]) {
      const {environment, hub, coordinator, readers} = await browsing(["/a", "/b"]);
      const before = hub.publish(topic, "before");
      await environment.pass(SECOND);
      hub.up = false;
      hub.cut();
      hub.publish("/a", "lost");
      hub.forgotten = hub.log.length;
      const behind = hub.lastId;
      hub.up = true;
      await environment.pass(10 * SECOND);
      const [late, next] = [before, behind].map((cursor) => new BrowserTab(coordinator).stream("/a", cursor));
      await environment.pass(10 * SECOND);
      hub.publish("/a", "1");
      await environment.pass(SECOND);
      assert.deepEqual(readers.map((reader) => reader.state), ["gap", "gap"]);
      assert.deepEqual([late.data, late.state, next.data, next.state], [["1"], "gap", ["1"], "caught-up"], topic);
    }
  });

  test("of an event that was too large is told to those who come later from before it", async () => {
    const {environment, hub, coordinator, readers: [reader]} = await browsing(["/a"]);
    const before = hub.publish("/a", "1");
    const large = hub.publish("/a", "x".repeat(LIMITS.eventLength + 1));
    await environment.pass(SECOND);
    const [late, next] = [before, large].map((cursor) => new BrowserTab(coordinator).stream("/a", cursor));
    await environment.pass(10 * SECOND);
    hub.publish("/a", "2");
    await environment.pass(SECOND);
    assert.deepEqual([reader, late, next].map(({data, state}) => [data, state]), [[["1", "2"], "gap"], [["2"], "gap"], [["2"], "caught-up"]]);
  });

  test("without names is everybody's", async () => {
    const {environment, hub, readers} = await browsing(["/a", "/b"]);
    for (const stream of hub.streams) stream.send(`event: mercure\nid: #9\ndata: {"type": "gap", "reason": "overrun"}\n\n`);
    await environment.pass(SECOND);
    assert.deepEqual(readers.map((reader) => reader.state), ["gap", "gap"]);
  });
});

describe("a tab", () => {
  test("that does not read is forgotten, told so, and comes back from where it is", async () => {
    const {environment, hub, readers: [reader]} = await browsing(["/a"]);
    const {tab} = reader;
    tab.reading = false;
    const more = LIMITS.unread + 10;
    for (let number = 0; number < more; number += 1) {
      hub.publish("/a", String(number));
      if (number % 100 === 0) await environment.pass(10);
    }
    await environment.pass(SECOND);
    assert.equal(tab.resets, 1);
    assert.ok(reader.data.length < more);
    Object.assign(tab, {reading: true});
    tab.rejoin();
    await environment.pass(10 * SECOND);
    assert.deepEqual(reader.data, Array.from({length: more}, (_, number) => String(number)));
  });

  test("that does not read what is large is forgotten sooner", async () => {
    const {environment, hub, readers: [reader]} = await browsing(["/a"]);
    reader.tab.reading = false;
    for (let number = 0; number < 6; number += 1) hub.publish("/a", "x".repeat(LIMITS.unreadLength / 4));
    await environment.pass(SECOND);
    assert.equal(reader.tab.resets, 1);
  });

  test("that says nothing for minutes is gone; when it speaks again, it is told to begin anew", async () => {
    const {environment, hub, readers: [reader]} = await browsing(["/a"]);
    reader.tab.speaking = false;
    await environment.pass(4 * MINUTE);
    assert.equal(hub.streams.size, 0);
    reader.tab.say({type: "ping"});
    assert.equal(reader.tab.resets, 2);
    hub.publish("/a", "1");
    reader.tab.rejoin();
    await environment.pass(SECOND);
    assert.deepEqual(reader.data, ["1"]);
  });

  test("that pings stays", async () => {
    const {environment, hub, readers: [reader]} = await browsing(["/a"]);
    reader.tab.speaking = false;
    for (let minute = 0; minute < 10; minute += 1) {
      reader.tab.say({type: "ping"});
      assert.equal(reader.tab.heard.type, "pong");
      await environment.pass(MINUTE);
    }
    assert.equal(hub.streams.size, 1);
  });

  test("of a quiet stream is told the cursor of the others", async () => {
    const {environment, hub, readers: [one, quiet]} = await browsing(["/a", "/b"]);
    const last = hub.publish("/a", "1");
    await environment.pass(10 * SECOND);
    assert.equal(one.cursor, last);
    assert.equal(quiet.cursor, last);
  });

  test("of a stream that has caught up is not told a cursor from before its newest event", async () => {
    const {environment, hub, coordinator} = await browsing(["/a"]);
    const added = new BrowserTab(coordinator).stream("/b", hub.publish("/b", "0"));
    await environment.pass(500);
    hub.publish("/a", "1");
    await environment.pass(100);
    const newest = hub.publish("/b", "2");
    await environment.pass(2 * SECOND);
    for (const stream of hub.streams) stream.send(":\n\n");
    await environment.pass(10 * SECOND);
    assert.equal(added.cursor, newest);
  });

  test("reloaded again and again makes few requests", async () => {
    const {environment, hub, endpoint, readers: [reader]} = await browsing(["/a"]);
    for (let reload = 0; reload < 50; reload += 1) {
      reader.tab.close();
      reader.tab = new BrowserTab(reader.tab.coordinator);
      hub.publish("/elsewhere", "x");
      reader.tab.stream("/a", hub.lastId);
      await environment.pass(5);
    }
    await environment.pass(10 * SECOND);
    assert.ok(endpoint.requests.length <= 15 && hub.requests.length <= 25, `${endpoint.requests.length} and ${hub.requests.length}`);
    assert.equal(hub.streams.size, 1);
  });
});

describe("a hub without a token endpoint", () => {
  const token = (claims) => `x.${Buffer.from(JSON.stringify({exp: 1_700_003_600, ...claims})).toString("base64url")}.x`;
  const want = (topics, more = {}) => ({hub: "https://app.test/hub", matchers: topics.map((topic) => ["match", topic]), credentials: "same-origin", ...more});

  // The hub of these tests takes what says what it grants.
  async function subscribing() {
    const all = browser();
    const answer = all.hub.answer.bind(all.hub);
    all.accepted = (shown) => JSON.parse(Buffer.from(shown.split(".")[1], "base64url"));
    all.hub.answer = (url, init) => {
      const shown = init.headers.Authorization?.slice(7);
      const claims = shown ? all.accepted(shown) : {exp: 1e10};
      const topics = [...new URL(url).searchParams.getAll("match"), ...new URLSearchParams(init.body ?? "").getAll("match")];
      return answer(url, {...init, headers: {...init.headers, Authorization: `Bearer ${JSON.stringify({topics, ...claims})}`}});
    };
    return all;
  }

  test("gives all events of the topics, whatever their type", async () => {
    const {environment, hub, coordinator} = await subscribing();
    const reader = new BrowserTab(coordinator).join(null, "earliest", want(["/a", "/b"]));
    await environment.pass(SECOND);
    hub.publish("/a", "1", {type: "message"});
    hub.publish("/b", "2", {type: "price"});
    await environment.pass(SECOND);
    assert.deepEqual(reader.events.map(({type, data}) => [type, data]), [["message", "1"], ["price", "2"]]);
  });

  const join = (coordinator, topics, cursor, more) => new BrowserTab(coordinator).join(null, cursor, want(topics, more));

  test("is one connection for all that tabs want with the same rights, and another for others", async () => {
    const {environment, hub, coordinator} = await subscribing();
    const rights = {rights: "me"};
    const tabs = [["/a"], ["/a"], ["/b"], ["/b", "/a"]].map((topics) => new BrowserTab(coordinator).join(null, "earliest", want(topics, rights), token({sub: "me", jti: String(Math.random())})));
    await environment.pass(SECOND);
    assert.equal(hub.streams.size, 1);
    new BrowserTab(coordinator).join(null, "earliest", want(["/a"], {rights: "you"}), token({sub: "you"}));
    await environment.pass(SECOND);
    assert.equal(hub.streams.size, 2);
    hub.publish("/a", "1");
    hub.publish(["/b", "/a"], "2");
    await environment.pass(SECOND);
    assert.deepEqual(tabs.map((reader) => reader.data), [["1", "2"], ["1", "2"], ["2"], ["1", "2"]]);
  });

  test("is asked for the matchers' names, of which pages hear nothing", async () => {
    const {environment, hub, coordinator} = await subscribing();
    const readers = [["/a"], ["/b"]].map((topics) => join(coordinator, topics, null));
    await environment.pass(SECOND);
    hub.publish(["/a", "/b"], "1");
    await environment.pass(SECOND);
    assert.equal(gets(hub)[0].headers["Hikyaku-Stream"], "matchers");
    assert.deepEqual(readers.map(({events}) => events.map((event) => Object.keys(event).sort())), Array(2).fill([["data", "id", "identified", "type"]]));
  });

  test("catches up for what is added, also with what others had, and repeats nothing to them", async () => {
    const {environment, hub, coordinator} = await subscribing();
    const first = join(coordinator, ["/a"], hub.lastId);
    await environment.pass(SECOND);
    const cursor = hub.lastId;
    hub.publish(["/a", "/b"], "1");
    hub.publish("/b", "2");
    hub.publish("/a", "3");
    await environment.pass(SECOND);
    const second = join(coordinator, ["/b"], cursor);
    await environment.pass(SECOND);
    hub.publish(["/b", "/a"], "4");
    await environment.pass(SECOND);
    assert.deepEqual([first.data, second.data], [["1", "3", "4"], ["1", "2", "4"]]);
    assert.equal(hub.streams.size, 1);
    assert.equal(gets(hub).length, 1);
  });

  test("has a second connection for moments where a list from an earlier event has something in common with another", async () => {
    const {environment, hub, coordinator} = await subscribing();
    const first = join(coordinator, ["/a"], hub.lastId);
    await environment.pass(SECOND);
    const cursor = hub.lastId;
    hub.publish("/a", "1");
    hub.publish("/b", "2");
    await environment.pass(SECOND);
    const second = join(coordinator, ["/a", "/b"], cursor);
    await environment.pass(10 * SECOND);
    hub.publish(["/b", "/a"], "3");
    await environment.pass(SECOND);
    assert.deepEqual([first.data, second.data], [["1", "3"], ["1", "2", "3"]]);
    assert.equal(hub.streams.size, 1);
    assert.deepEqual(new Set(gets(hub).map(topicsOf).map(String)), new Set(["/a", "/a,/b"]));
  });

  test("is not taken up again from before a list was added that has something in common with another", async () => {
    const {environment, hub, coordinator} = await subscribing();
    hub.tells = false;
    const cursor = hub.publish("/b", "1");
    hub.publish("/a", "2");
    join(coordinator, ["/a"], hub.lastId);
    await environment.pass(SECOND);
    const second = join(coordinator, ["/a", "/b"], cursor);
    for (let step = 0; step < 1000 && posts(hub).length === 0; step += 1) await environment.pass(1);
    hub.publish("/a", "3");
    hub.publish("/b", "4");
    await environment.pass(MINUTE);
    assert.equal(hub.streams.size, 1);
    hub.cut();
    await environment.pass(MINUTE);
    hub.publish("/b", "5");
    await environment.pass(SECOND);
    assert.deepEqual(second.data, ["2", "3", "4", "5"]);
  });

  test("that does not name matchers has a connection for each list", async () => {
    for (const settings of [{naming: false}, {changeable: false}]) {
      const {environment, hub, coordinator} = await subscribing();
      Object.assign(hub, settings);
      const readers = [["/a"], ["/b"], ["/c", "/a"], ["/b"]].map((topics) => join(coordinator, topics, hub.lastId));
      await environment.pass(2 * SECOND);
      hub.publish("/a", "1");
      hub.publish("/b", "2");
      await environment.pass(SECOND);
      assert.deepEqual(readers.map((reader) => reader.data), [["1"], ["2"], ["1"], ["2"]], JSON.stringify(settings));
      assert.equal(hub.streams.size, 3);
      join(coordinator, ["/d"], hub.lastId);
      await environment.pass(SECOND);
      assert.equal(hub.streams.size, 4);
      assert.equal(gets(hub).length, 5, "it finds that out once");
    }
  });

  test("that rejects one of many lists is asked for each by itself, and the others share a connection", async () => {
    for (const together of [true, false]) {
      const {environment, hub, coordinator} = await subscribing();
      const answer = hub.answer.bind(hub);
      const rejection = {status: 400, headers: new Headers(), body: null};
      hub.answer = async (url, init) => ((decodeURIComponent(`${url} ${init.body}`)).includes("/bad") ? (hub.requests.push({}), rejection) : answer(url, init));
      const readers = [];
      for (const topics of [["/a"], ["/bad"], ["/b"], ["/c"]]) {
        readers.push(join(coordinator, topics, hub.lastId));
        if (!together) await environment.pass(SECOND);
      }
      await environment.pass(MINUTE);
      hub.publish(["/a", "/c"], "1");
      hub.publish("/b", "2");
      await environment.pass(SECOND);
      assert.deepEqual(readers.map(({data, state}) => [data, state]), [[["1"], "caught-up"], [[], "refused"], [["2"], "caught-up"], [["1"], "caught-up"]], `together: ${together}`);
      assert.deepEqual(readers[1].details.at(-1), {reason: "rejected", status: 400});
      assert.equal(hub.streams.size, 1);
      const requests = hub.requests.length;
      await environment.pass(MINUTE);
      assert.ok(hub.requests.length - requests < 2, "it is left alone");
    }
  });

  test("that takes only so many matchers together is asked for the others on another connection", async () => {
    const {environment, hub, coordinator} = await subscribing();
    const answer = hub.answer.bind(hub);
    const rejection = {status: 400, headers: new Headers(), body: null};
    const count = (url, {body}) => [...new URL(url).searchParams.getAll("match"), ...new URLSearchParams(body ?? "").getAll("match")].length;
    hub.answer = async (url, init) => (count(url, init) > 2 ? rejection : answer(url, init));
    const readers = ["/a", "/b", "/c", "/d"].map((topic) => join(coordinator, [topic], hub.lastId));
    await environment.pass(MINUTE);
    for (const topic of ["/a", "/b", "/c", "/d"]) hub.publish(topic, topic);
    await environment.pass(SECOND);
    assert.deepEqual(readers.map((reader) => reader.data), [["/a"], ["/b"], ["/c"], ["/d"]]);
    assert.equal(hub.streams.size, 2);
  });

  test("has one second connection at most, whosever tokens there are, and each list gets what it missed", async () => {
    const {environment, hub, coordinator} = await subscribing();
    const cursor = hub.publish("/a", "0");
    const readers = [];
    for (const rights of ["me", "you", "they"]) readers.push(join(coordinator, ["/a"], cursor, {rights}));
    await environment.pass(SECOND);
    hub.publish("/a", "1");
    await environment.pass(SECOND);
    hub.pending = () => 2 * SECOND;
    hub.heartbeat = 0;
    for (const rights of ["me", "you", "they"]) readers.push(join(coordinator, ["/a"], "earliest", {rights}));
    let most = 0;
    for (let step = 0; step < 300; step += 1) {
      await environment.pass(100);
      most = Math.max(most, hub.streams.size);
    }
    assert.deepEqual(readers.map((reader) => reader.data), [...Array(3).fill(["1"]), ...Array(3).fill(["0", "1"])]);
    assert.equal(most, 4);
    assert.equal(hub.streams.size, 3);
  });

  test("refreshes a token in its time, also when another list is added late in its life", async () => {
    const {environment, hub, coordinator} = await subscribing();
    const tab = new BrowserTab(coordinator);
    const fresh = () => token({iat: environment.now() / SECOND, exp: environment.now() / SECOND + 100});
    const asking = {asks: true, rights: "me"};
    tab.newToken = fresh;
    const first = tab.join(null, hub.lastId, want(["/a"], asking), fresh());
    await environment.pass(70 * SECOND);
    const second = tab.join(null, hub.lastId, want(["/b"], asking), first.token ?? fresh());
    await environment.pass(200 * SECOND);
    assert.deepEqual([first.states, second.states], Array(2).fill(["connected", "caught-up"]));
  });

  test("asks the page for another token before one expires", async () => {
    const {environment, hub, coordinator} = await subscribing();
    const tab = new BrowserTab(coordinator);
    const fresh = () => token({iat: environment.now() / SECOND, exp: environment.now() / SECOND + 100});
    let asked = 0;
    tab.newToken = () => (asked += 1, fresh());
    const reader = tab.join(null, "earliest", want(["/a"], {asks: true}), fresh());
    await environment.pass(6 * MINUTE);
    hub.publish("/a", "1");
    await environment.pass(SECOND);
    assert.deepEqual(reader.data, ["1"]);
    assert.ok(asked >= 3 && asked <= 6, `${asked}`);
    assert.equal(gets(hub).length, 1);
  });

  test("takes the token of another tab when one has expired, and refuses when there is none", async () => {
    const all = await subscribing();
    const {environment, hub, coordinator} = all;
    const now = environment.now() / SECOND;
    const [first, second] = [100, 1_000].map((life) => new BrowserTab(coordinator).join(null, "earliest", want(["/a"], {rights: "me"}), token({exp: now + life})));
    await environment.pass(10 * MINUTE);
    hub.publish("/a", "1");
    await environment.pass(SECOND);
    assert.deepEqual([first.data, second.data], [["1"], ["1"]]);
    await environment.pass(10 * MINUTE);
    assert.deepEqual([first.state, second.state], ["refused", "refused"]);
    assert.deepEqual(first.details.at(-1), {reason: "unauthorized", status: 401});
  });

  test("that rejects what it is asked is not asked again", async () => {
    const {environment, hub, coordinator} = await subscribing();
    hub.refusing = 400;
    const reader = new BrowserTab(coordinator).join(null, null, want(["/a"]));
    await environment.pass(MINUTE);
    assert.equal(reader.state, "refused");
    assert.deepEqual(reader.details.at(-1), {reason: "rejected", status: 400});
    assert.equal(hub.requests.length, 1);
  });

  test("of another origin that lets our header not through is asked without", async () => {
    const {environment, hub, coordinator} = await subscribing();
    environment.base = "https://another.test/";
    const answer = hub.answer.bind(hub);
    hub.answer = (url, init) => (init.headers["Hikyaku-Stream"] ? Promise.reject(new TypeError("preflight")) : answer(url, init));
    const reader = new BrowserTab(coordinator).join(null, "earliest", want(["/a"]));
    await environment.pass(10 * SECOND);
    assert.equal(reader.state, "caught-up");
  });

  test("is shown an id that is not ASCII in the address", async () => {
    const {environment, hub, coordinator} = await subscribing();
    hub.publish("/a", "0", {id: "ünd 2"});
    hub.publish("/a", "1");
    const reader = new BrowserTab(coordinator).join(null, "ünd 2", want(["/a"]));
    await environment.pass(SECOND);
    assert.deepEqual(reader.data, ["1"]);
    assert.equal(hub.requests[0].url.searchParams.get("last_event_id"), "ünd 2");
  });
});

test("with a pattern a stream gets the hub's events about its subscriptions", async () => {
  const {environment, hub, endpoint, coordinator} = browser();
  const answer = endpoint.answer.bind(endpoint);
  endpoint.answer = async (...all) => {
    const response = await answer(...all);
    const document = await response.json();
    return {...response, json: async () => ({...document, patterns: {"signed:/here:1": "/subscriptions/here/:subscriber"}})};
  };
  const tab = new BrowserTab(coordinator);
  const [here, other] = [tab.stream("/here"), tab.stream("/other")];
  await environment.pass(SECOND);
  assert.deepEqual(hub.requests[0].url.searchParams.getAll("match_urlpattern"), ["/subscriptions/here/:subscriber"]);
  const event = JSON.stringify({type: "subscription", match: "/here", active: true});
  for (const stream of hub.streams) stream.send(`event: mercure\nid: 1\ndata: ${event}\n\nevent: mercure\nid: 2\ndata: {"type": "subscription", "match": "/x"}\n\n`);
  await environment.pass(SECOND);
  assert.deepEqual([here.data, other.data], [[event], []]);
});

describe("the pause before another attempt", () => {
  const least = (failures, told) => pauseAfter(failures, {random: () => 0, ...told});
  const most = (failures, told) => pauseAfter(failures, {random: () => 0.9999, ...told});

  test("grows with each failure, to a bound, and is different for everybody", () => {
    assert.deepEqual([1, 2, 3, 30].map((failures) => [least(failures), most(failures)].map((wait) => Math.round(wait / 100))),
      [[5, 15], [9, 25], [14, 43], [150, 450]]);
  });

  test("is never less than the server has told", () => {
    assert.equal(least(0, {retry: 3_000}), 3_000);
    assert.equal(least(1, {retry: 60_000}), 60_000);
    assert.equal(least(1, {retryAfter: 20_000}), 20_000);
    assert.ok(most(1, {retryAfter: 20_000}) <= 24_000);
    assert.ok(most(1, {retryAfter: 1e9}) <= 720_000, "nobody waits for years");
  });
});
