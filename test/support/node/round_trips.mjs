// Reads what Ruby has written, writes it again, and says what it was: test/javascript/round_trips_test.rb.
//
// Each line of its input is JSON: msgpack (Base64), and json, a text, or neither of them. Each line of its output: msgpack, json, the same again; same,
// whether they say the same; kinds, of the elements of an array; or error.

import assert from "node:assert/strict";
import {createInterface} from "node:readline";
import {pack, unpack} from "../../../app/assets/javascripts/hikyaku-msgpack.js";

const MOMENT = /^-?\d{4,5}-\d\d-\d\dT/;
const WIDE = /^-?\d{19,}$/; // text in MessagePack, which has integers of 64 bits, and a number in JSON

// What both formats say of an object: JSON has no moments, and JavaScript reads its integers as numbers.
function common(value) {
  if (typeof value === "bigint") return Number(value);
  if (value instanceof Date) return value.getTime();
  if (typeof value === "string" && MOMENT.test(value)) return new Date(value).getTime();
  if (typeof value === "string" && WIDE.test(value)) return Number(value);
  if (Array.isArray(value)) return value.map(common);
  if (value !== null && typeof value === "object") return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, common(each)]));
  return value;
}

function same(one, other) {
  try {
    assert.deepStrictEqual(one, other);
    return true;
  } catch {
    return false;
  }
}

function answer({msgpack, json}) {
  const answer = {};
  if (msgpack !== undefined) {
    const value = unpack(Buffer.from(msgpack, "base64"));
    answer.msgpack = Buffer.from(pack(value)).toString("base64");
    if (Array.isArray(value)) answer.kinds = value.map((each) => (each === null ? "null" : typeof each === "object" ? each.constructor.name : typeof each));
    if (json !== undefined) answer.same = same(common(value), common(JSON.parse(json)));
  }
  if (json !== undefined) answer.json = JSON.stringify(JSON.parse(json));
  return answer;
}

for await (const line of createInterface({input: process.stdin})) {
  try {
    console.log(JSON.stringify(answer(JSON.parse(line))));
  } catch (error) {
    console.log(JSON.stringify({error: `${error.name}: ${error.message}`}));
  }
}
