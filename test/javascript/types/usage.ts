// What programs write with the types of hikyaku.js, hikyaku-presence.js, hikyaku-send.js and hikyaku-msgpack.js, and mistakes that these are to notice. Compiled, and never run:
// where the line after `@ts-expect-error` is no mistake, that is one.

import {EventParser, Coordinator, Hikyaku, LIMITS, Stream, pauseAfter} from "hikyaku";
import type {CoordinatorMessage, HikyakuElementEvents, HikyakuEvent, HikyakuStreamSourceElement, Source, State, StateDetail, Environment} from "hikyaku";
import {Roster} from "hikyaku/presence";
import {Expiring, Replies, SendError, Throttle, byType, ephemeral, send} from "hikyaku/send";
import {Malformed, MessagePackParser, MessagePackSource, Timestamp, pack, unpack} from "hikyaku/msgpack";
import type {Value} from "hikyaku/msgpack";
import type {HikyakuPresenceElement, Presence, User} from "hikyaku/presence";

type Same<A, B> = [A] extends [B] ? ([B] extends [A] ? true : false) : false;
const same = <A, B>(_: Same<A, B>): void => {};
declare function show(text: string): void;

// ---- streams

const source: Source = Hikyaku.connect({endpoint: new URL("https://example.com/hikyaku/streams")});
const stream: Stream = source.stream("signed", {
  cursor: null,
  onmessage: ({id, type, data, identified}) => show(identified ? id + type : data),
  onstate: (state, {reason, status, pause, lastEventId}) => show(`${state} ${reason} ${status?.toFixed()} ${pause?.toFixed()} ${lastEventId}`),
  oncursor: show,
});
show(stream.lastEventId ?? stream.state ?? String(stream.closed));
stream.close();
// @ts-expect-error streams are made by a source
new Stream();
// @ts-expect-error it is read
stream.state = "connected";
// @ts-expect-error there is no such state
same<typeof stream.state, "open" | null>(true);
// @ts-expect-error a name is needed
source.stream();
// @ts-expect-error there is no such handler
source.stream("signed", {onevent: (event: HikyakuEvent) => show(event.id)});

Hikyaku.subscribe("/.well-known/mercure", {match: ["/a"], matchUrlPattern: "/b/:id", token: async () => "token", withCredentials: true, lastEventId: "1"});
Hikyaku.subscribe(new URL("https://example.com/"), {match: "/a", token: null, onmessage: ({data}) => show(data)});
// @ts-expect-error the options say what is asked for
Hikyaku.subscribe("/.well-known/mercure");
// @ts-expect-error a token is a text
Hikyaku.subscribe("/.well-known/mercure", {match: "/a", token: 1});
// @ts-expect-error it has another name
Hikyaku.subscribe("/.well-known/mercure", {match_urlpattern: "/b/:id"});

Hikyaku.configure({worker: false});
// @ts-expect-error an address, or false
Hikyaku.configure({worker: true});
same<typeof Hikyaku.sharing, "worker" | "tabs" | "page" | null>(true);
// @ts-expect-error it is read
Hikyaku.sharing = "page";

// ---- elements and their events, which bubble as far as the window

const element = document.querySelector("hikyaku-stream-source")!;
same<typeof element, HikyakuStreamSourceElement>(true);
same<typeof element.state, State | null>(true);
element.addEventListener("message", (event) => show(event.data + event.lastEventId));
element.addEventListener("hikyaku:event", ({detail}) => show(detail.id + detail.type + detail.data));
element.addEventListener("click", (event) => show(String(event.clientX)));
element.addEventListener("another", (event) => show(event.type));
document.addEventListener("hikyaku:reconnecting", ({detail}) => same<typeof detail, StateDetail>(true));
document.addEventListener("hikyaku:gap", (event) => event.preventDefault());
document.addEventListener("hikyaku:refresh-waits", ({detail: {forms, refresh}}) => forms[0]?.reset() ?? refresh());
window.addEventListener("hikyaku:refused", ({detail}) => show(detail.reason ?? ""));
addEventListener("hikyaku:caught-up", ({detail}) => same<typeof detail, StateDetail>(true));
same<keyof HikyakuElementEvents, `hikyaku:${State | "event"}`>(true);
// @ts-expect-error an event has an id, not a number
window.addEventListener("hikyaku:event", ({detail}) => show(detail.number));
// @ts-expect-error a refusal has no data
document.addEventListener("hikyaku:refused", ({detail}) => show(detail.data));
// @ts-expect-error what there is no such event of has no detail
window.addEventListener("hikyaku:open", ({detail}) => show(detail));

// ---- who is here

const presence = document.querySelector("hikyaku-presence")!;
same<typeof presence, HikyakuPresenceElement>(true);
presence.here.forEach(({id, name}) => show(`${id} ${name}`));
for (const target of [presence, document, window]) show(typeof target);
presence.addEventListener("hikyaku:presence", ({detail}) => same<typeof detail, Presence>(true));
document.addEventListener("hikyaku:presence", ({detail: {here, joined, left}}) => same<User[], typeof here | typeof joined | typeof left>(true));
window.addEventListener("hikyaku:presence", ({detail}) => show(detail.here.length.toFixed()));
presence.addEventListener("hikyaku:refused", ({detail}) => same<typeof detail, StateDetail>(true));
// @ts-expect-error nobody has gone: they have left
window.addEventListener("hikyaku:presence", ({detail}) => show(detail.gone));
const roster = new Roster({grace: 5_000, onchange: ({here}) => show(here.map((user) => user.id).join())});
roster.expect();
roster.take([["subscriber", {id: 1, name: "Ada"}]]);
roster.apply({subscriber: "subscriber", active: false, payload: null});
// @ts-expect-error somebody is to be told
new Roster({grace: 5_000});

// ---- MessagePack

const packed = new MessagePackSource(new URL("https://example.com/hub?match=a"), {
  lastEventId: "1", token: async () => "token", withCredentials: true, signal: new AbortController().signal,
  onmessage: ({id, type, data}) => show(id + type + data),
  onstate: (state, {reason}) => show(state + reason),
});
same<typeof packed.state, State | null>(true);
packed.close();
// @ts-expect-error it is read
packed.lastEventId = "2";
// @ts-expect-error there is no such handler
new MessagePackSource("/hub", {onevent: () => {}});
const value: Value = unpack(pack({a: [1n, null, new Date(), new Uint8Array(1)]}), {depth: 5, items: 10});
if (value instanceof Timestamp) show(value.nanoseconds.toFixed() + value.toISOString());
// @ts-expect-error not every value is a text
show(value);
// @ts-expect-error bytes, not text
unpack("a");
new MessagePackParser({onevent: ({data}) => show(data), onoversize: show}, {limit: 1_000}).push(new Uint8Array(1));
show(new Malformed("it is broken").message);

// ---- what a page sends

const cursor = new Throttle("/cursors", {perSecond: 10, onerror: (error) => show(error.message)});
cursor.send({x: 1});
cursor.send();
cursor.cancel();
// @ts-expect-error a rate is a number
new Throttle("/cursors", {perSecond: "10"});
const typists = new Expiring<number, string>({seconds: 5, onchange: (names) => show([...names.values()].join())});
typists.set(1, "Ada");
typists.delete(1);
// @ts-expect-error a name is a text
typists.set(1, 2);
// @ts-expect-error for how long?
new Expiring({onchange: () => {}});
const replies = new Replies();
Hikyaku.subscribe("/hub", {match: "/a", ...ephemeral(({id, name}: {id: number; name: string}, event) => typists.set(id, name + event.type))});
Hikyaku.subscribe("/hub", {match: "/a", ...replies});
Hikyaku.subscribe("/hub", {match: ["/a", "/b"], ...byType({typing: ephemeral((data) => show(data.name)), reply: replies, other: {onmessage: ({data}) => show(data)}})});
replies.ask<number>("/sums", [1, 2], {seconds: 5}).then((sum) => show(sum.toFixed()), (error) => {
  if (error instanceof SendError) show(error.reason + (error.status ?? 0).toFixed() + (error.retryAfter ?? 0).toFixed());
});
// @ts-expect-error nobody knows what an answer is, until it is said
replies.ask("/sums").then((sum) => show(sum.toFixed()));
send("/rooms/1/typing", {typing: true}, {method: "PUT", seconds: 1}).then((answer) => same<typeof answer, unknown>(true));
// @ts-expect-error what is read is not sent
send("/rooms/1", {}, {method: "GET"});
// @ts-expect-error there is no such reason
show(new SendError("why?", {reason: "because"}).message);
// @ts-expect-error a function or a part is for a type, not a text
byType({typing: "handler"});

// ---- the parts

const parser = new EventParser({oncomment: (text) => show(text.trim()), onretry: (milliseconds) => show(milliseconds.toFixed()), onmark: show}, {limit: LIMITS.eventLength});
parser.push(new Uint8Array(1));
// @ts-expect-error bytes, not text
parser.push("data: 1\n\n");
// @ts-expect-error a comment is a text
new EventParser({oncomment: (text: number) => show(text.toFixed())});
// @ts-expect-error they hold
LIMITS.names = 1;
// @ts-expect-error there is no such limit
show(LIMITS.tabs);
show(pauseAfter(3, {retry: null, retryAfter: 1_000, random: Math.random}).toFixed());

const environment: Environment = {fetch: (url, init) => fetch(url, init), now: Date.now, random: Math.random, setTimeout: (action, wait) => setTimeout(action, wait), clearTimeout: () => {}, warn: show};
const coordinator = new Coordinator(environment);
coordinator.receive("a tab", {type: "hello"}, (message: CoordinatorMessage) => {
  if (message.type === "event") show(message.event.data + message.ids.join());
  if (message.type === "state") show(message.state + message.detail.reason);
});
coordinator.receive("a tab", {type: "join", readers: [{id: 1, want: {endpoint: "/streams"}, name: "signed", cursor: null, token: null}]}, () => {});
show(coordinator.connections.toFixed());
coordinator.close();
// @ts-expect-error a tab says no such thing
coordinator.receive("a tab", {type: "goodbye"}, () => {});
// @ts-expect-error answers go somewhere
coordinator.receive("a tab", {type: "ping"});
// @ts-expect-error it has no more than that to do with the environment
new Coordinator({now: Date.now});
