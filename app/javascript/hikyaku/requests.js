// What requests have in common: how long they may take, and when they are made again.

import {SECOND, TIMES} from "./limits.js";

// Milliseconds until the next attempt: never less than the server told, longer after each failure, and different for
// everybody, so that those who lost their hub together do not come back together.
export function pauseAfter(failures, {retry = null, retryAfter = 0, random = Math.random} = {}) {
  const grown = Math.min((retry ?? TIMES.retry) * 1.7 ** Math.max(0, failures - 1), Math.max(TIMES.longestRetry, retry ?? 0));
  const wait = retry === null ? grown * (0.5 + random()) : grown * (1 + random() / 2);
  return Math.max(wait, Math.min(retryAfter, TIMES.longestRetryAfter) * (1 + random() / 5));
}

// RFC 9110 section 10.2.3: seconds, or a date.
export function retryAfterOf(response, environment) {
  const value = response.headers.get("retry-after") ?? "";
  if (/^\d+$/.test(value)) return Number(value) * SECOND;
  return Math.max(0, Date.parse(value) - (Date.parse(response.headers.get("date") ?? "") || environment.now())) || 0;
}

// With a limit of time, since a request may wait for ever for a place among the browser's connections.
export async function fetchWithin(environment, url, init, abort = new AbortController()) {
  const timer = environment.setTimeout(() => abort.abort(), TIMES.answer);
  try {
    return await environment.fetch(url, {cache: "no-store", ...init, signal: abort.signal});
  } finally {
    environment.clearTimeout(timer);
  }
}

// Whether a server does not take what it is asked, and will not later either.
export function isRejection(status) {
  return status >= 400 && status < 500 && ![401, 403, 404, 408, 410, 425, 429].includes(status);
}

export function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
