// Values and streams of MessagePack: https://github.com/msgpack/msgpack/blob/master/spec.md and docs/streams.md. What Ruby writes and reads is
// compared with this in round_trips_test.rb.

import {describe, test} from "node:test";
import assert from "node:assert/strict";
import {Malformed, MessagePackParser, Timestamp, pack, unpack} from "../../app/assets/javascripts/hikyaku-msgpack.js";
import {generator} from "./support/environment.mjs";

const bytesOf = (hex) => Uint8Array.from(hex.replaceAll(" ", "").match(/../g) ?? [], (each) => parseInt(each, 16));
const hexOf = (bytes) => Buffer.from(bytes).toString("hex");

describe("values", () => {
  // Both ways.
  const SAME = {
    "c0": null, "c2": false, "c3": true, "00": 0, "7f": 127, "e0": -32, "ff": -1, "cc80": 128, "ccff": 255, "cd0100": 256, "ce00010000": 65_536, "ceffffffff": 2 ** 32 - 1,
    "cf0000000100000000": 2 ** 32, "cf001fffffffffffff": Number.MAX_SAFE_INTEGER, "cf0020000000000000": 2n ** 53n, "cfffffffffffffffff": 2n ** 64n - 1n,
    "d0df": -33, "d080": -128, "d1ff7f": -129, "d18000": -32_768, "d2ffff7fff": -32_769, "d280000000": -(2 ** 31), "d3ffffffff7fffffff": -(2 ** 31) - 1,
    "d3ffe0000000000001": Number.MIN_SAFE_INTEGER, "d38000000000000000": -(2n ** 63n), "cb3fb999999999999a": 0.1, "cb8000000000000000": -0, "cb4480f0cf064dd592": 1e22,
    "a0": "", "a161": "a", "a2c3bc": "ü", "a4f09f9880": "😀", "a3efbbbf": "\uFEFF", "90": [], "92c0a0": [null, ""], "80": {}, "81a16101": {a: 1}, "c400": bytesOf(""), "c402ff00": bytesOf("ff00"),
    "d6ff00000001": new Timestamp(1), "d7ffee6b27fc00000000": new Timestamp(0, 999_999_999), "c70cff00000001ffffffffffffffff": new Timestamp(-1, 1),
  };
  for (const [hex, value] of Object.entries(SAME)) {
    test(`${hex} is ${typeof value}`, () => {
      assert.deepEqual(unpack(bytesOf(hex)), value);
      assert.equal(hexOf(pack(value)), hex);
    });
  }

  test("what may be written longer is read", () => {
    for (const [hex, value] of [["ca3fc00000", 1.5], ["cf0000000000000001", 1], ["d3ffffffffffffffff", -1], ["d90161", "a"], ["db0000000161", "a"], ["dd0000000101", [1]], ["df00000001d9016101", {a: 1}], ["c60000000161", bytesOf("61")], ["c704ff00000001", new Timestamp(1)]]) {
      assert.deepEqual(unpack(bytesOf(hex)), value);
    }
    assert.equal(unpack(bytesOf("01").buffer), 1);
  });

  test("heads are as short as can be, at every edge", () => {
    for (const [length, head] of [[31, "bf"], [32, "d920"], [255, "d9ff"], [256, "da0100"], [65_535, "daffff"], [65_536, "db00010000"]]) {
      const packed = pack("x".repeat(length));
      assert.ok(hexOf(packed).startsWith(head));
      assert.equal(unpack(packed), "x".repeat(length));
    }
    for (const [count, head] of [[15, "9f"], [16, "dc0010"], [65_535, "dcffff"], [65_536, "dd00010000"]]) assert.ok(hexOf(pack(Array(count).fill(0))).startsWith(head));
    for (const [count, head] of [[15, "8f"], [16, "de0010"]]) assert.ok(hexOf(pack(Object.fromEntries(Array.from({length: count}, (_, i) => [`k${i}`, i])))).startsWith(head));
  });

  test("what JavaScript has and MessagePack has not is as in JSON", () => {
    assert.deepEqual(unpack(pack([undefined, new Date(NaN)])), [null, null]);
    assert.deepEqual(unpack(pack({a: undefined, b: {toJSON: () => "c"}})), {b: "c"});
    assert.deepEqual(unpack(pack({at: new Date(1_234)})).at, new Timestamp(1, 234_000_000));
    const moved = new Timestamp(1, 234_567_891);
    moved.setMilliseconds(5);
    assert.equal(unpack(pack(moved)).nanoseconds, 5_000_000);
    for (const number of [NaN, Infinity, -Infinity]) assert.throws(() => pack({a: number}), /no number for others/);
    assert.throws(() => pack(2n ** 64n), /64 bits/);
    assert.throws(() => pack(-(2n ** 63n) - 1n), RangeError);
    assert.throws(() => pack([() => {}]), TypeError);
    for (const text of ["\ud800", "a\udc00b", "\udc00\ud800"]) {
      assert.throws(() => pack(text), TypeError);
      assert.throws(() => pack({[text]: 1}), /half a surrogate pair/);
    }
    assert.equal(unpack(pack("a\ud83d\ude00")), "a\u{1F600}");
    const circle = [];
    circle.push(circle);
    assert.throws(() => pack(circle), /contains itself/);
  });

  test("a Map is written as a map, and a Set as an array, also inside of others", () => {
    const entries = [["a", 1], ["__proto__", new Map([["b", new Set(["c", 2])]])], ["gone", undefined]];
    assert.equal(hexOf(pack(new Map(entries))), "82a16101a95f5f70726f746f5f5f81a16292a16302");
    const many = unpack(pack(new Map(Array.from({length: 20}, (_, i) => [`k${i}`, i]))));
    assert.deepEqual([Object.keys(many).length, many.k19], [20, 19]);
    for (const key of [1, null, {}, Symbol("s"), undefined]) assert.throws(() => pack(new Map([[key, 1]])), /key that is no text/);
    const circle = new Map();
    circle.set("a", circle);
    assert.throws(() => pack(circle), /contains itself/);
  });

  test("a key may be called as anything, and is a key", () => {
    const read = unpack(bytesOf("82a95f5f70726f746f5f5f81a16101a6746f4a534f4e02"));
    assert.deepEqual(Object.keys(read), ["__proto__", "toJSON"]);
    assert.equal({}.a, undefined);
    assert.equal(Object.getPrototypeOf(read), Object.prototype);
  });

  test("binary data is a copy", () => {
    for (const bytes of [bytesOf("c40161"), Buffer.from("c40161", "hex")]) {
      const read = unpack(bytes);
      bytes[2] = 0;
      assert.deepEqual(read, bytesOf("61"));
    }
    assert.equal(hexOf(pack(new DataView(bytesOf("ff6100").buffer, 1, 1))), "c40161");
  });

  const REFUSED = {
    "": /not so much/, "c1": /0xC1/, "92c0c1": /0xC1/, "c0c0": /behind the value/, "cc": /1 bytes are expected/, "a2c3": /expected/, "da00": /not so much/, "81a161": /expected/,
    "ddffffffff": /4294967295 bytes/, "dfffffffff": /expected/, "dbffffffff61": /4294967295 bytes/, "c6ffffffff61": /expected/, "c9ffffffffff": /expected/,
    "a2c328": /no UTF-8/, "a3eda080": /no UTF-8/, "810101": /key that is no text/, "8190c0": /key that is no text/, "82a16101d9016102": /second time/,
    "cb7ff8000000000000": /none or endless/, "cb7ff0000000000000": /none or endless/, "caff800000": /none or endless/, "d40100": /extension type 1/, "c70080": /extension type -128/,
    "d4ff00": /timestamp that is none/, "d7ffffffffff00000000": /timestamp/, "c70cff000000017fffffffffffffff": /timestamp/, [`${"91".repeat(101)}c0`]: /too deep/,
  };
  for (const [hex, message] of Object.entries(REFUSED)) {
    test(`${hex.slice(0, 24) || "nothing"} is refused`, () => assert.throws(() => unpack(bytesOf(hex)), (error) => error instanceof Malformed && message.test(error.message)));
  }

  test("there are no more items, and no deeper ones, than the caller wants", () => {
    assert.deepEqual(unpack(pack([1, {a: 2}]), {depth: 2, items: 3}), [1, {a: 2}]);
    assert.throws(() => unpack(pack([1, {a: 2}]), {depth: 1}), /too deep/);
    assert.throws(() => unpack(pack([1, {a: 2}]), {items: 2}), /more items/);
  });

  test("bytes at random are read or refused, and what is read is written so that it reads the same", () => {
    const chance = generator(8);
    let read = 0;
    for (let round = 0; round < 20_000; round += 1) {
      const bytes = Uint8Array.from({length: 1 + Math.floor(chance() * 12)}, () => Math.floor(chance() * 256));
      try {
        const value = unpack(bytes);
        read += 1;
        assert.deepEqual(unpack(pack(value)), value);
      } catch (error) {
        assert.ok(error instanceof Malformed, error);
      }
    }
    assert.ok(read > 500);
  });
});

// What a stream says, in the order in which it says it.
function parse(pieces, options) {
  const said = [];
  const parser = new MessagePackParser({
    onevent: ({id, type, data, identified}) => said.push([type, data, id, identified]),
    onretry: (wait) => said.push(["retry", wait]),
    oncomment: (text) => said.push(["comment", text]),
    onoversize: (id) => said.push(["oversize", id]),
  }, options);
  for (const piece of pieces) parser.push(piece);
  return said;
}

const joined = (values) => Uint8Array.from(values.flatMap((value) => [...pack(value)]));
const message = (data, id = "", identified = id !== "") => ["message", data, id, identified];

describe("streams", () => {
  const STREAMS = {
    "an event": [[["1", null, "a"]], [message("a", "1")]],
    "types": [[["1", "note", "a"], ["2", "", "b"]], [["note", "a", "1", true], message("b", "2")]],
    "without an id, the one before holds": [[["1", null, "a"], [null, null, "b"], ["", null, "c"]], [message("a", "1"), message("b", "1", false), message("c", "", true)]],
    "ids that a header cannot carry do not count": [[["2\r\nx: y", null, "a"], ["2\0", null, "b"]], [message("a"), message("b")]],
    "heartbeats, and that all has come": [[null, true], [["comment", ""], ["comment", "caught up"]]],
    "the reconnection time": [[0, 127, 5_000, 70_000, 2 ** 40], [0, 127, 5_000, 70_000, 2 ** 40].map((wait) => ["retry", wait])],
    "lengths of every size": [[["i".repeat(31), "t".repeat(200), "d".repeat(300)]], [["t".repeat(200), "d".repeat(300), "i".repeat(31), true]]],
    "text beyond ASCII": [[["日", "évé", "\uFEFF😀\u2028"]], [["évé", "\uFEFF😀\u2028", "日", true]]],
    "what is not known is left out": [[false, -1, -70_000, 1.5, "text", {a: [1, {b: null}]}, bytesOf("ff"), new Date(0), {}, ["1", null, "a", {more: [1]}, 2]], [message("a", "1")]],
  };
  for (const [name, [values, expected]] of Object.entries(STREAMS)) {
    test(`${name}, however the bytes are cut`, () => {
      const bytes = joined(values);
      assert.deepEqual(parse([bytes]), expected);
      assert.deepEqual(parse([...bytes].map((byte) => Uint8Array.of(byte))), expected, "byte by byte");
      for (let cut = 1; cut < bytes.length; cut += 1) assert.deepEqual(parse([bytes.subarray(0, cut), new Uint8Array(0), bytes.subarray(cut)]), expected, `cut at ${cut}`);
    });
  }

  test("every kind of value is stepped over, to its last byte", () => {
    const c1 = (count) => "c1".repeat(count);
    const all = [...[1, 2, 4, 8, 16].map((length, index) => `d${4 + index}07${c1(length)}`), `c70307${c1(3)}`, `c8000307${c1(3)}`, `c90000000307${c1(3)}`, `c403${c1(3)}`, `c50003${c1(3)}`, `c600000003${c1(3)}`,
      `d0${c1(1)}`, `d1${c1(2)}`, `d2${c1(4)}`, `d3${c1(8)}`, `ca${c1(4)}`, `cb${c1(8)}`, "82c0c0c0c0", "de0001c0c0", "df00000001c0c0", "d90161", "da000161", "db0000000161", "e0", "c2"];
    const stream = Uint8Array.from(all.flatMap((hex, index) => [...bytesOf(hex), ...pack([`${index}`, null, "a"])]));
    for (const pieces of [[stream], [...stream].map((byte) => Uint8Array.of(byte))]) assert.deepEqual(parse(pieces), all.map((_, index) => message("a", `${index}`)));
  });

  test("an event is given with its last byte", () => {
    let seen = 0;
    const parser = new MessagePackParser({onevent: () => (seen += 1)});
    const bytes = joined([["1", null, "a"]]);
    for (const byte of bytes.subarray(0, -1)) parser.push(Uint8Array.of(byte));
    assert.equal(seen, 0);
    parser.push(bytes.subarray(-1));
    assert.equal(seen, 1);
  });

  test("what is not UTF-8 is refused, whichever part it is", () => {
    for (const [hex, part] of [["93c0c0a361ff62", "data"], ["93a1ffc0a161", "id"], ["93c0a1ffa161", "type"]]) {
      assert.throws(() => parse([bytesOf(hex)]), (error) => error instanceof Malformed && error.message === `the ${part} of an event is no UTF-8`);
    }
  });

  for (const hex of ["c1", "93c1", "90", "92c0a161", "9301c0a161", "93c080a161", "93c0c0c40161", "93c0c0c0", "93c0c0d40100", "91".repeat(200), "8101".repeat(200), `94c0c0a0${"91".repeat(200)}`]) {
    test(`${hex.slice(0, 24)} is refused, however it comes`, () => {
      for (const pieces of [[bytesOf(hex)], [...bytesOf(hex)].map((byte) => Uint8Array.of(byte))]) assert.throws(() => parse(pieces), Malformed);
    });
  }

  const LARGE = [["data", [["1", null, "x".repeat(101)]], "1"], ["a type", [["1", "x".repeat(200), "a"]], "1"], ["an id", [["x".repeat(300), null, "a"]], ""],
    ["what is no event", ["x".repeat(101)], ""], ["many items", [Array(101).fill(0)], ""], ["all together", [["1", "x".repeat(50), "y".repeat(50)]], "1"], ["deep inside", [["1", null, "a", {b: [bytesOf("00".repeat(200))]}]], "1"]];
  for (const [name, values, id] of LARGE) {
    test(`what is too large is left out, told with its id where that is known, and does not disturb the next: ${name}`, () => {
      const bytes = joined([...values, ["2", null, "next"]]);
      const expected = [["oversize", id], message("next", "2")];
      assert.deepEqual(parse([bytes], {limit: 100}), expected);
      assert.deepEqual(parse([...bytes].map((byte) => Uint8Array.of(byte)), {limit: 100}), expected);
    });
  }

  test("as large as it may be it is an event, and nothing is kept of what is larger, however long it goes on", () => {
    assert.deepEqual(parse([joined([[null, null, "x".repeat(95)]])], {limit: 100}), [message("x".repeat(95))]);
    assert.deepEqual(parse([bytesOf("dc0032 dc0032")], {limit: 100}), [["oversize", ""]], "before it is there");
    const parser = new MessagePackParser({}, {limit: 100});
    parser.push(bytesOf("93 a131 c0 db ffffffff"));
    const before = process.memoryUsage().arrayBuffers;
    for (let count = 0; count < 1_000; count += 1) parser.push(new Uint8Array(100_000));
    assert.ok(process.memoryUsage().arrayBuffers - before < 60_000_000);
  });

  test("bytes at random end in what they say or in an error of one kind", () => {
    const chance = generator(9);
    const good = joined([["1", "t", "data"], null, 5]);
    for (let round = 0; round < 5_000; round += 1) {
      const bytes = Uint8Array.from(good);
      for (let count = 0; count < 2; count += 1) bytes[Math.floor(chance() * bytes.length)] = Math.floor(chance() * 256);
      const cut = Math.floor(chance() * bytes.length);
      try {
        assert.deepEqual(parse([bytes.subarray(0, cut), bytes.subarray(cut)], {limit: 300}), parse([bytes], {limit: 300}));
      } catch (error) {
        assert.ok(error instanceof Malformed, error);
      }
    }
  });
});
