// Pages that come and go while everything goes wrong: see support/simulation.mjs. SEED is the first of the seeds.

import {test} from "node:test";
import assert from "node:assert/strict";
import {simulate} from "./support/simulation.mjs";

const first = Number(process.env.SEED ?? 1);
const HUBS = {
  "whose streams can be changed": {},
  "whose streams cannot be changed": {changeable: false},
  "that forgets": {history: 30},
  "that sends no comments": {heartbeat: 0},
  "that does not tell when a stream has caught up": {tells: false},
  "that does neither": {changeable: false, heartbeat: 0},
};

for (const [name, settings] of Object.entries(HUBS)) {
  test(`with a hub ${name} every page gets what came after it was rendered, in order, once`, async () => {
    for (let seed = first; seed < first + 5; seed += 1) {
      const {mistakes, mostStreams} = await simulate(seed, settings);
      assert.deepEqual(mistakes.slice(0, 3), [], `SEED=${seed}`);
      assert.ok(mostStreams <= 3, `${mostStreams} connections, SEED=${seed}`);
    }
  });
}
