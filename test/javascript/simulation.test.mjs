// Pages that come and go while everything goes wrong: see support/simulation.mjs. SEED is the first of the seeds.

import {test} from "node:test";
import assert from "node:assert/strict";
import {simulate} from "./support/simulation.mjs";

const first = Number(process.env.SEED ?? 1);
const HUBS = {
  "whose streams can be changed": {},
  "whose streams cannot be changed": {changeable: false},
  "that forgets": {history: 30},
  "that forgets all the time": {forgets: true, rare: [12, 14, 25, 40]},
  "that forgets all the time, and whose streams cannot be changed": {forgets: true, changeable: false, rare: [9, 20, 63]},
  "that sends no comments": {heartbeat: 0},
  "that does not tell when a stream has caught up": {tells: false},
  "that does neither": {changeable: false, heartbeat: 0},
  "without a token endpoint": {lists: true, rare: [20, 31]},
  "without a token endpoint, that forgets": {lists: true, history: 30},
  "without a token endpoint, that forgets all the time": {lists: true, forgets: true},
  "without a token endpoint, that does not tell when a stream has caught up": {lists: true, tells: false},
  "without a token endpoint, that does not name matchers": {lists: true, naming: false, many: true},
  "without a token endpoint, whose streams cannot be changed": {lists: true, changeable: false, many: true},
};

// `rare`: seeds by which something happens that seldom does.
// `many`: each list of topics takes a connection of its own.
for (const [name, {rare = [], many = false, ...settings}] of Object.entries(HUBS)) {
  test(`with a hub ${name} every page gets what came after it was rendered, in order, once, or is told of a gap`, async () => {
    for (const seed of [...Array.from({length: 5}, (_, index) => first + index), ...rare]) {
      const {mistakes, mostStreams, gaps} = await simulate(seed, settings);
      assert.deepEqual(mistakes.slice(0, 3), [], `SEED=${seed}`);
      assert.ok(mostStreams <= (many ? 15 : 3), `${mostStreams} connections, SEED=${seed}`);
      if (!settings.history) assert.equal(gaps > 0, Boolean(settings.forgets), `${gaps} gaps, SEED=${seed}`);
    }
  });
}
