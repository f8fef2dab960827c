// Who is here, as it follows from lists and events that come in any order.

import {describe, test} from "node:test";
import assert from "node:assert/strict";
import {readFileSync} from "node:fs";

// Pages find the other file by their import map.
const source = readFileSync(new URL("../../app/assets/javascripts/hikyaku-presence.js", import.meta.url), "utf8");
const {Roster} = await import(`data:text/javascript,${encodeURIComponent(source.replace(/^import \{Hikyaku\} from "hikyaku";$/m, "const Hikyaku = null;"))}`);

// A clock that a test moves.
class TestEnvironment {
  time = 0;
  timers = new Map();
  count = 0;

  now() {
    return this.time;
  }

  setTimeout(action, wait) {
    this.timers.set(++this.count, {action, at: this.time + wait});
    return this.count;
  }

  clearTimeout(timer) {
    this.timers.delete(timer);
  }

  pass(seconds) {
    this.time += seconds * 1000;
    for (const [timer, {action, at}] of [...this.timers]) if (at <= this.time && this.timers.delete(timer)) action();
  }
}

const ada = {id: 1, name: "Ada"};
const bob = {id: 2, name: "Bob"};
const cyd = {id: "3", name: "Cyd"};
const names = (users) => users.map((user) => user.name).join(" ");

function roster() {
  const environment = new TestEnvironment();
  const told = [];
  const it = new Roster({environment, onchange: ({here, joined, left}) => told.push(`${names(here)} +${names(joined)} -${names(left)}`)});
  return {
    environment, told, roster: it,
    list: (...pairs) => (it.expect(), it.take(pairs)),
    come: (subscriber, payload) => it.apply({subscriber, active: true, payload}),
    go: (subscriber, payload) => it.apply({subscriber, active: false, payload}),
    last: () => told.splice(0).join("; "),
  };
}

describe("presence", () => {
  test("the first list says who is here, and that nobody has joined; events say who comes and goes", () => {
    const {list, come, go, environment, last} = roster();
    list(["a", ada]);
    assert.equal(last(), "Ada + -");
    come("b", bob);
    assert.equal(last(), "Ada Bob +Bob -");
    go("a", ada);
    assert.equal(last(), "");
    environment.pass(5);
    assert.equal(last(), "Bob + -Ada");
  });

  test("an empty list is told too", () => {
    const {list, last} = roster();
    list();
    assert.equal(last(), " + -");
  });

  test("several connections of a user are one", () => {
    const {list, come, go, environment, last} = roster();
    list(["a1", ada], ["a2", {...ada, id: "1"}]);
    last();
    come("a3", {...ada, id: "1"});
    go("a1", ada);
    go("a2", ada);
    environment.pass(60);
    assert.equal(last(), "");
    go("a3", ada);
    environment.pass(5);
    assert.equal(last(), " + -Ada");
  });

  test("who comes back within the grace has never left", () => {
    const {list, come, go, environment, last} = roster();
    list(["a", ada], ["b", bob]);
    last();
    go("b", bob);
    environment.pass(4.9);
    come("b2", bob);
    environment.pass(60);
    assert.equal(last(), "");
    go("b2", bob);
    environment.pass(4.9);
    assert.equal(last(), "");
    environment.pass(0.1);
    assert.equal(last(), "Ada + -Bob");
    come("b3", bob);
    assert.equal(last(), "Ada Bob +Bob -");
  });

  test("events that come before the list, and after it was asked for, count more than it", () => {
    const {roster, come, go, last} = roster_asking();
    come("b", bob);
    go("c", cyd);
    roster.take([["a", ada], ["c", cyd]]);
    assert.equal(last(), "Ada Bob + -");
  });

  test("the same again changes nothing, nor does the end of what was not known", () => {
    const {list, come, go, environment, last} = roster();
    list(["a", ada]);
    last();
    come("a", ada);
    go("z", cyd);
    environment.pass(60);
    assert.equal(last(), "");
  });

  test("while it is doubtful who is here nothing is told, and afterwards the difference, once", () => {
    const {roster, list, come, go, environment, last} = roster_with(["a", ada], ["b", bob]);
    go("b", bob);
    roster.doubt();
    environment.pass(60);
    go("a", ada);
    come("c", cyd);
    assert.equal(last(), "");
    assert.equal(names(roster.here), "Ada Bob");
    list(["a", ada], ["c", cyd]);
    assert.equal(last(), "Ada Bob Cyd +Cyd -");
    environment.pass(5);
    assert.equal(last(), "Ada Cyd + -Bob");
  });

  test("a subscription that ended unseen is not in the list, and gone; one that came after is not forgotten", () => {
    const {roster, come, environment, last} = roster_with(["a", ada], ["b", bob]);
    roster.doubt();
    come("ghost", cyd);
    roster.expect();
    come("b2", bob);
    roster.take([["a2", ada]]);
    assert.equal(last(), "");
    environment.pass(60);
    assert.equal(names(roster.here), "Ada Bob");
  });

  test("after a hub that lost everybody, others have as long to come back as this page took, and more", () => {
    const {roster, list, come, environment, last} = roster_with(["a", ada], ["b", bob], ["c", cyd]);
    roster.doubt();
    environment.pass(10);
    list(["a2", ada]);
    environment.pass(19);
    come("b2", bob);
    assert.equal(last(), "");
    environment.pass(1);
    assert.equal(last(), "Ada Bob + -Cyd");
    roster.doubt();
    environment.pass(3600);
    list(["a3", ada]);
    environment.pass(44);
    assert.equal(last(), "");
    environment.pass(1);
    assert.equal(last(), "Ada + -Bob");
  });

  test("the page's own subscription, which the hub announces before the list comes, is no sign that the hub has kept the others", () => {
    const {roster, list, come, environment, last} = roster_with(["a", ada], ["b", bob]);
    roster.doubt();
    environment.pass(10);
    come("a2", ada);
    list(["a2", ada]);
    environment.pass(19);
    come("b2", bob);
    environment.pass(60);
    assert.equal(last(), "");
  });

  test("a list that was asked for before the connection was lost again is not taken", () => {
    const {roster, last} = roster_with(["a", ada]);
    roster.doubt();
    roster.expect();
    roster.doubt();
    roster.take([["b", bob]]);
    assert.equal(last(), "");
    assert.equal(names(roster.here), "Ada");
  });

  test("a name that changes is told", () => {
    const {list, come, last} = roster();
    list(["a", ada]);
    last();
    come("a2", {id: 1, name: "Countess"});
    assert.equal(last(), "Countess + -");
  });

  test("what has no id is nobody, and what is no document is nothing", () => {
    const {roster, list, last} = roster_with(["a", ada]);
    for (const document of [{subscriber: "x", active: true}, {subscriber: "x", active: true, payload: null}, {subscriber: "x", active: true, payload: {name: "?"}},
      {active: true, payload: bob}, {subscriber: 7, active: true, payload: bob}]) roster.apply(document);
    list(["a", ada], ["y", null], ["z", {id: null}]);
    assert.equal(last(), "");
  });

  test("when it is closed nobody leaves any more", () => {
    const {roster, go, environment, last} = roster_with(["a", ada]);
    go("a", ada);
    roster.close();
    environment.pass(60);
    assert.equal(last(), "");
  });

  test("after any history it knows what is so", () => {
    for (let seed = 1; seed <= 300; seed += 1) history(seed);
  });
});

function roster_with(...pairs) {
  const all = roster();
  all.list(...pairs);
  all.last();
  return all;
}

function roster_asking() {
  const all = roster();
  all.roster.expect();
  return all;
}

// A hub with subscriptions that come and go, a connection that breaks and loses events, lists that are late.
function history(seed) {
  let state = seed;
  const random = (n) => (state = (state * 48271) % 2147483647) % n;
  const {roster: it, environment} = roster();
  const users = [ada, bob, cyd];
  const hub = new Map();
  let connected = false;
  let list = null;
  for (let step = 0, next = 0; step < 200; step += 1) {
    const event = [() => {
      const payload = users[random(3)];
      hub.set(`s${++next}`, payload);
      return {subscriber: `s${next}`, active: true, payload};
    }, () => {
      const [subscriber] = [...hub.keys()].slice(random(hub.size || 1));
      const payload = hub.get(subscriber);
      hub.delete(subscriber);
      return subscriber && {subscriber, active: false, payload};
    }, () => {
      connected = !connected;
      it.doubt();
      list = null;
      if (connected) it.expect();
    }, () => {
      if (connected && list === null) list = [...hub];
      else if (list) it.take(list);
    }, () => environment.pass(random(3))][random(5)]();
    if (event && connected) it.apply(event);
  }
  it.doubt();
  it.expect();
  it.take([...hub]);
  environment.pass(60);
  assert.deepEqual(new Set(it.here.map(({id}) => id)), new Set([...hub.values()].map(({id}) => id)), `history ${seed}`);
}
