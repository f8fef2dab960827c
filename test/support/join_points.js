// Readers that come and go at random while events are published one at a time: test/system/compressed_streams_test.rb.
//
// Each joins by EventSource or by fetch, at the events to come or at one that was. After each event all readers that it is for are waited for, before
// there is another: what is not flushed is not seen. Gives how many joined, and the mistakes.
async ({hub, token, seed, joins, readers: most}) => {
  let state = seed >>> 0;
  const chance = () => { // mulberry32
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
  const pick = (list) => list[Math.floor(chance() * list.length)];
  const within = (promise, what) => Promise.race([promise, new Promise((_, reject) => setTimeout(() => reject(new Error(what)), 60_000))]);

  const byEventSource = (url, seen) => new Promise((resolve, reject) => {
    const source = new EventSource(url);
    source.onopen = () => resolve(() => source.close());
    source.onerror = () => reject(new Error("the EventSource has an error"));
    source.onmessage = ({lastEventId, data}) => seen(lastEventId, data);
  });

  const byFetch = async (url, seen) => {
    const abort = new AbortController();
    const {body} = await fetch(url, {signal: abort.signal, cache: "no-store"});
    const read = async () => {
      let text = "";
      for await (const piece of body.pipeThrough(new TextDecoderStream())) {
        const blocks = (text + piece).split("\n\n");
        text = blocks.pop();
        for (const [, id, data] of blocks.map((block) => block.match(/^id: (.*)\ndata: (.*)$/)).filter(Boolean)) seen(id, data);
      }
    };
    read().catch(() => {});
    return () => abort.abort();
  };

  const published = [];
  const readers = new Set();
  const mistakes = [];
  const counts = {EventSource: 0, fetch: 0, replayed: 0, events: 0, joins: 0};

  const expected = (reader) => published.slice(reader.begin).filter(({topic}) => reader.topics.includes(topic)).map(({id, data}) => [id, data]);

  // Waits until a reader has as many events as it is to have.
  const sees = async (reader) => {
    const count = expected(reader).length;
    if (reader.events.length < count) await within(new Promise((resolve) => (reader.wake = () => reader.events.length >= count && resolve())), `${reader.kind} ${reader.number} saw ${reader.events.length} of ${count} events`);
  };

  const join = async () => {
    const past = chance() < 0.4 && published.length > 0 ? Math.floor(chance() * Math.min(published.length, 80)) + 1 : null;
    const reader = {number: ++counts.joins, kind: pick(["EventSource", "fetch"]), topics: pick([["/a"], ["/a"], ["/a"], ["/a", "/b"]]), events: [], wake() {}};
    reader.begin = published.length - (past === null ? 0 : past - 1);
    const url = new URL(hub, location);
    for (const topic of reader.topics) url.searchParams.append("match", topic);
    if (past !== null) url.searchParams.set("last_event_id", published[reader.begin - 1].id);
    counts[reader.kind] += 1;
    if (past > 1) counts.replayed += 1;
    const seen = (id, data) => {
      reader.events.push([id, data]);
      reader.wake();
    };
    reader.close = await within((reader.kind === "fetch" ? byFetch : byEventSource)(url, seen), `${reader.kind} ${reader.number} did not open`);
    readers.add(reader);
  };

  const leave = (reader) => {
    reader.close();
    readers.delete(reader);
    if (JSON.stringify(reader.events) !== JSON.stringify(expected(reader))) mistakes.push(`${reader.kind} ${reader.number} has others than its own`);
  };

  const publish = async () => {
    const topic = pick(["/a", "/a", "/b"]);
    const data = `${published.length} é ${chance().toString(36).repeat(chance() < 0.02 ? 8_000 : Math.ceil(chance() * 20))}`;
    const body = new URLSearchParams({topic, data});
    const response = await fetch(hub, {method: "POST", body, headers: {Authorization: `Bearer ${token}`}});
    published.push({id: await response.text(), topic, data});
  };

  try {
    while (counts.joins < joins) {
      while (readers.size < 2 || (readers.size < most && counts.joins < joins && chance() < 0.6)) await join();
      for (let count = Math.ceil(chance() * 3); count > 0; count -= 1) {
        await publish();
        await Promise.all([...readers].map(sees));
      }
      for (const reader of [...readers]) if (chance() < 0.4 && readers.size > 2) leave(reader);
    }
    [...readers].forEach(leave);
  } catch (error) {
    mistakes.push(error.message);
  }
  [...readers].forEach((reader) => reader.close());
  counts.events = published.length;
  return {...counts, mistakes: mistakes.slice(0, 5)};
}
