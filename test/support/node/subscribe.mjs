// Subscribes with the npm package `eventsource` and prints one line of JSON for whatever happens.
//
// Its argument is JSON: url; token, sent as Authorization by the package's `fetch` option; types, event types beside
// "message"; clients, how many of them (1). Each line has the number of its client, what happened, and the time in ms.

import { EventSource } from "eventsource"

const { url, token, types = [], clients = 1 } = JSON.parse(process.argv[2])

const say = (client, happening, more = {}) => console.log(JSON.stringify({ client, happening, at: performance.now(), ...more }))

for (let client = 0; client < clients; client++) {
  const source = new EventSource(url, {
    fetch: (input, init) => {
      const headers = token ? { ...init.headers, Authorization: `Bearer ${token}` } : init.headers
      say(client, "request", { lastEventId: headers["Last-Event-ID"] ?? null })
      return fetch(input, { ...init, headers })
    },
  })
  source.onopen = () => say(client, "open")
  source.onerror = (error) => say(client, "error", { code: error.code ?? null, state: source.readyState })
  for (const type of ["message", ...types]) {
    source.addEventListener(type, (event) => say(client, "event", { type, id: event.lastEventId, data: event.data }))
  }
}

// Until it is told to end.
setInterval(() => {}, 60_000)
