// HTML standard, sections "Parsing an event stream" and "Interpreting an event stream".

import {describe, test} from "node:test";
import assert from "node:assert/strict";
import {EventParser} from "../../app/assets/javascripts/hikyaku.js";
import {generator} from "./support/environment.mjs";

const encoder = new TextEncoder();
const bytesOf = (stream) => (typeof stream === "string" ? encoder.encode(stream) : Uint8Array.from(stream));

// What a stream says, in the order in which it says it.
function parse(pieces, options) {
  const said = [];
  const parser = new EventParser({
    onevent: ({id, type, data, identified}) => said.push([type, data, id, identified]),
    onmark: (id) => said.push(["mark", id]),
    onretry: (wait) => said.push(["retry", wait]),
    onoversize: (id) => said.push(["oversize", id]),
  }, options);
  for (const piece of pieces) parser.push(piece);
  return said;
}

const message = (data, id = "", identified = id !== "") => ["message", data, id, identified];

const STREAMS = {
  "one event": ["data: a\n\n", [message("a")]],
  "two lines": ["data: YHOO\ndata: +2\ndata: 10\n\n", [message("YHOO\n+2\n10")]],
  "fields of an event": ["event: add\nid: 7\ndata: 73857293\n\n", [["add", "73857293", "7", true]]],
  "comments are nothing": [": test stream\n\n:\ndata: first\n:data: no\n\n", [message("first")]],
  "one space is taken away": ["data:test\n\ndata: test\n\ndata:  test\n\ndata:\ttest\n\n", [message("test"), message("test"), message(" test"), message("\ttest")]],
  "empty data is data": ["data\n\ndata\ndata\n\ndata:", [message(""), message("\n")]],
  "a line break at the end of data stays": ["data: a\ndata:\n\n", [message("a\n")]],
  "an event without data is none, but its id counts": ["id: 1\nevent: x\n\ndata: a\n\n", [["mark", "1"], message("a", "1", false)]],
  "an id stays until another comes": ["data: a\nid: 1\n\ndata: b\n\nid\ndata: c\n\ndata: d\n\n",
    [message("a", "1"), message("b", "1", false), message("c", "", true), message("d")]],
  "an id with NUL is ignored": ["id: 1\ndata: a\n\nid: 2\0\ndata: b\n\n", [message("a", "1"), message("b", "1", false)]],
  "the id of an event that did not end does not count": ["id: 1\ndata: a\n\nid: 2\ndata: b\n", [message("a", "1")]],
  "an event that did not end is none": ["data: a\n\ndata: b\n", [message("a")]],
  "retry takes digits only": ["retry: 1500\nretry: 20x\nretry: -3\nretry:\nretry: 1.5\nretry: ٣\n", [["retry", 1500]]],
  "retry counts at once": ["retry: 10\n", [["retry", 10]]],
  "leading zeros": ["retry:0020\n", [["retry", 20]]],
  "the last type and id win": ["event: a\nevent: b\nid: 1\nid: 2\ndata: x\n\n", [["b", "x", "2", true]]],
  "an empty type is message": ["event:\ndata: x\n\nevent: a\nevent\ndata: y\n\n", [message("x"), message("y")]],
  "a type does not stay": ["event: a\ndata: x\n\ndata: y\n\nevent: b\n\ndata: z\n\n", [["a", "x", "", false], message("y"), message("z")]],
  "names are exact": ["Data: a\nDATA: a\ndata : a\n data: a\ndat: a\ndataa: a\nmatch: x\ndata: b\n\n", [message("b")]],
  "colons of a value": ["data: a: b:c\nid::x\n\n", [message("a: b:c", ":x")]],
  "CR": ["data: a\rdata: b\r\rdata: c\r\r", [message("a\nb"), message("c")]],
  "CRLF": ["data: a\r\ndata: b\r\n\r\ndata: c\r\n\r\n", [message("a\nb"), message("c")]],
  "mixed": ["data: a\r\ndata: b\rdata: c\ndata: d\n\r\ndata: e\r\r\n\n\r", [message("a\nb\nc\nd"), message("e")]],
  "LF CR is two ends": ["data: a\n\rdata: b\n\r", [message("a"), message("b")]],
  "a byte order mark": ["\uFEFFdata: a\n\n", [message("a")]],
  "only one, and only at the beginning": ["\uFEFF\uFEFFdata: a\ndata: b\n\n\uFEFFdata: c\n\ndata: \uFEFFd\n\n", [message("b"), message("\uFEFFd")]],
  "text beyond ASCII": ["event: évé\nid: 日\ndata: 😀\u2028\u0085\v\f\n\n", [["évé", "😀\u2028\u0085\v\f", "日", true]]],
  "bytes that are not UTF-8": [[...encoder.encode("data: a"), 0xff, 0x62, 0xe2, 0x82, 0x0a, 0x0a], [message("a\uFFFDb\uFFFD")]],
  "NUL in data": ["data: a\0b\n\n", [message("a\0b")]],
  "nothing": ["", []],
  "empty lines": ["\n\n\r\r\n\n", []],
};

describe("the standard's interpretation", () => {
  for (const [name, [stream, expected]] of Object.entries(STREAMS)) {
    test(name, () => assert.deepEqual(parse([bytesOf(stream)]), expected));
  }

  test("however the bytes are cut, the events are the same", () => {
    for (const [name, [stream, expected]] of Object.entries(STREAMS)) {
      const bytes = bytesOf(stream);
      assert.deepEqual(parse([...bytes].map((byte) => Uint8Array.of(byte))), expected, `${name}, byte by byte`);
      for (let cut = 1; cut < bytes.length; cut += 1) {
        assert.deepEqual(parse([bytes.subarray(0, cut), new Uint8Array(0), bytes.subarray(cut)]), expected, `${name}, cut at ${cut}`);
      }
    }
  });

  // Of the words that the grammar is made of, so that line ends, fields and broken text meet in every way.
  test("random streams, cut at random, give what a plain reading of the standard gives", () => {
    const words = ["\r", "\n", "\r\n", ":", " ", "data", "id", "event", "retry", "data: x", "1", "\0", "\uFEFF", "€"].map(bytesOf);
    words.push(Uint8Array.of(0xff));
    const chance = generator(4711);
    for (let round = 0; round < 600; round += 1) {
      const stream = Uint8Array.from(Array.from({length: 1 + chance() * 60}, () => [...words[Math.floor(chance() * words.length)]]).flat());
      const pieces = [];
      for (let at = 0; at < stream.length;) pieces.push(stream.subarray(at, (at += 1 + Math.floor(chance() * 7))));
      assert.deepEqual(parse(pieces), plainly(stream), new TextDecoder().decode(stream));
    }
  });
});

test("an event is given as soon as its last byte is there", () => {
  const seen = [];
  const parser = new EventParser({onevent: (event) => seen.push(event.data)});
  for (const byte of bytesOf("data: a\r\r")) parser.push(Uint8Array.of(byte));
  assert.deepEqual(seen, ["a"]);
  parser.push(bytesOf("\ndata: b\n\n"));
  assert.deepEqual(seen, ["a", "b"]);
});

test("comments are told, those in an event as well", () => {
  let comments = 0;
  const parser = new EventParser({oncomment: () => (comments += 1)});
  parser.push(bytesOf(":\n\ndata: a\n: b\n\n:c\r\n"));
  assert.equal(comments, 3);
});

describe("an event that is larger than it may be", () => {
  const limit = 100;
  const large = [
    ["one line", ["data: ", "x".repeat(101), "\n\n"]],
    ["one line in many pieces", ["data: ", ..."x".repeat(300), "\n\n"]],
    ["many lines", [...Array.from({length: 5}, () => `data: ${"x".repeat(30)}\n`), "\n"]],
    ["many empty lines", [..."data\n".repeat(101), "\n"]],
    ["a type", [`event: ${"x".repeat(200)}\ndata: a\n\n`]],
  ];
  for (const [name, pieces] of large) {
    test(`is left out, told with its id, and does not disturb the next: ${name}`, () => {
      const said = parse(["id: 1\n", ...pieces, "id: 2\ndata: next\n\n"].map(bytesOf), {limit});
      assert.deepEqual(said, [["oversize", "1"], message("next", "2")]);
    });
  }

  test("its id may come after what is too large", () => {
    assert.deepEqual(parse([bytesOf(`data: ${"x".repeat(200)}\nid: 5\n\n`)], {limit}), [["oversize", "5"]]);
  });

  test("nothing of it is kept, however long it goes on", () => {
    const parser = new EventParser({}, {limit});
    const before = process.memoryUsage().heapUsed;
    const piece = bytesOf("x".repeat(100_000));
    for (let count = 0; count < 1_000; count += 1) parser.push(piece);
    assert.ok(process.memoryUsage().heapUsed - before < 60_000_000);
  });

  test("as large as it may be, it is an event; and comments are no part of it", () => {
    const data = "x".repeat(limit - "data: ".length);
    assert.deepEqual(parse([bytesOf(`data: ${data}\n\n`)], {limit}), [message(data)]);
    assert.deepEqual(parse([bytesOf(`${`:${"y".repeat(90)}\n`.repeat(20)}data: a\n\n`)], {limit}), [message("a")]);
    assert.deepEqual(parse([bytesOf(`:${"y".repeat(500)}\ndata: a\n\n`)], {limit}), [message("a")]);
  });
});

// The standard's own steps on the whole text, without regard to speed.
function plainly(stream) {
  const lines = new TextDecoder().decode(stream).split(/\r\n|\n|\r/);
  lines.pop();
  const said = [];
  let [data, type, buffer, lastId] = ["", "", null, ""];
  for (const line of lines) {
    if (line === "") {
      if (buffer !== null) lastId = buffer;
      if (data !== "") said.push([type || "message", data.slice(0, -1), lastId, buffer !== null]);
      else if (buffer !== null) said.push(["mark", lastId]);
      [data, type, buffer] = ["", "", null];
    } else if (!line.startsWith(":")) {
      const at = line.indexOf(":");
      const name = at < 0 ? line : line.slice(0, at);
      const value = at < 0 ? "" : line.slice(at + 1).replace(/^ /, "");
      if (name === "data") data += `${value}\n`;
      else if (name === "event") type = value;
      else if (name === "id" && !value.includes("\0")) buffer = value;
      else if (name === "retry" && /^[0-9]+$/.test(value)) said.push(["retry", Number(value)]);
    }
  }
  return said;
}

test("tells comments, with what they say", () => {
  const comments = [];
  const parser = new EventParser({oncomment: (text) => comments.push(text)});
  for (const piece of [":\n\n", ": caught", " up\r\n", "data: : no\n\n:one\n"]) parser.push(encoder.encode(piece));
  assert.deepEqual(comments, ["", "caught up", "one"]);
});
