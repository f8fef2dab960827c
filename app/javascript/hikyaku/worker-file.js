// Which file the shared worker is started from. Whatever is started runs, so that it is hikyaku.js and nothing else: in a bundle the
// module's own address is the bundle's, with all of the application in it.

import {TIMES} from "./limits.js";
import {ENVIRONMENT} from "./environment.js";

const OWN_NAME = /\/hikyaku(-[0-9a-f]{7,})?\.js$/; // with the digest of an asset pipeline, or without
const DEAD = "hikyaku/dead"; // where the browser keeps which file is of no use, and since when

let own = null;

// Takes a module's own address where that is the address of hikyaku.js.
export function rememberOwnFile(address) {
  own = address && OWN_NAME.test(new URL(address).pathname) ? address : null;
}

// Returns the address that was configured, or that the page names, or the module's own; null for none.
export function workerFile(configured) {
  if (configured === false) return null;
  const named = globalThis.document?.querySelector("meta[name=hikyaku-worker]")?.content;
  const address = configured || named || own;
  if (!address) {
    ENVIRONMENT.warn('one of the tabs holds the connection, and no shared worker: this is a bundle, and the page does not name hikyaku.js. Add <meta name="hikyaku-worker" content="address of hikyaku.js">');
    return null;
  }
  return new URL(address, globalThis.document?.baseURI ?? ENVIRONMENT.base).href;
}

// Whether a worker of that file was of no use a while ago, in any of the tabs.
export function isDead(address) {
  try {
    const {address: dead, at} = JSON.parse(localStorage.getItem(DEAD)) ?? {};
    return dead === address && Math.abs(Date.now() - at) < TIMES.dead;
  } catch {
    return false; // No storage: each tab finds out.
  }
}

// Keeps whether it is of no use, for the tabs that come.
export function noteDead(address, dead) {
  try {
    if (dead) localStorage.setItem(DEAD, JSON.stringify({address, at: Date.now()}));
    else if (isDead(address)) localStorage.removeItem(DEAD);
  } catch {
    // See above.
  }
}
