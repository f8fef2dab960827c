// Hikyaku in the browser: one connection for all tabs, and nothing lost or repeated. No dependencies, nothing to build.
//
//     import {Hikyaku} from "hikyaku";
//
//     Hikyaku.connect({token endpoint: "/hikyaku/streams"}).stream(signedName, {cursor, onmessage: (event) => show(event.data)});
//     Hikyaku.subscribe("/.well-known/mercure", {match: ["/books/1"], onmessage: (event) => show(event.data)});
//     <hikyaku-stream-source signed-stream-name="…" cursor="…" src="/hikyaku/streams"></hikyaku-stream-source>
//
// This is the page's module and also the shared worker's: see worker-file.js. From the network to the page:
//
//     EventParser   bytes → events (HTML standard, "Server-sent events")
//     Connection    one response; ArrivalTracker: what of it has arrived
//     SharedConnection         one connection that is made again, and carries the topics of many readers, in order, once; TopicSet: which
//     TokenScope       what one token endpoint grants: a token for up to 100 streams, and the connections that use it
//     Coordinator      the readers of all tabs; lives in the shared worker, or in one of the tabs
//     Link          between a tab and the coordinator:  WorkerLink, LeaderLink (no shared workers here), PageLink (no locks either)
//     Tab           the streams of a page, which it asks the coordinator for, and again when that is gone
//     Stream        what the page holds in its hand
//
// A cursor is the id of an event: everything up to it is in the page. Ids have no order that a browser could see, so
// that nothing here compares two: what comes after a cursor, the hub says, or the order in which a connection received events.
//
// There is a module for each of these in app/javascript/hikyaku. They run as they are wherever relative addresses lead to them;
// bin/javascript joins them to the one file that is served, app/assets/javascripts/hikyaku.js. For asset pipelines put digests into the
// names of files, to which relative imports do not lead, and an import map, which might, does not hold in a shared worker. One
// file is also one request for a page, and none for its worker.

import {LIMITS} from "./limits.js";
import {EventParser} from "./parser.js";
import {pauseAfter} from "./requests.js";
import {Coordinator} from "./coordinator.js";
import {NAME} from "./links.js";
import {Hikyaku, Stream} from "./stream.js";
import {defineElement} from "./element.js";
import {rememberOwnFile} from "./worker-file.js";

export {EventParser, Coordinator, Hikyaku, LIMITS, Stream, pauseAfter};

if (globalThis.SharedWorkerGlobalScope && globalThis.name === NAME) {
  const coordinator = new Coordinator();
  globalThis.onconnect = ({ports: [port]}) => {
    port.onmessage = ({data}) => coordinator.receive(data.tab, data, (message) => port.postMessage(message));
  };
} else {
  rememberOwnFile(import.meta.url);
  if (globalThis.customElements && !customElements.get("hikyaku-stream-source")) defineElement();
}
