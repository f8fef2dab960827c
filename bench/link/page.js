// What a page of the benchmark does: opens its streams, and notes when each message was sent and when it came.
window.bench = {
  open: 0,
  got: [], // [when it was sent, in nanoseconds of the machine's clock; when it came, in milliseconds of the page's]

  note(text) {
    const at = performance.now()
    const marker = /@T([0-9a-f]{16})[0-9a-f]{8}@/.exec(text)
    if (marker) this.got.push([parseInt(marker[1], 16), at])
  },

  streams(paths) {
    this.sources = paths.map((path) => {
      const source = new EventSource(path)
      source.onopen = () => this.open++
      source.onmessage = (event) => this.note(event.data)
      return source
    })
  },

  cable(path, identifiers) {
    const consumer = ActionCable.createConsumer(`wss://${location.host}${path}`)
    this.sources = identifiers.map((identifier) =>
      consumer.subscriptions.create(identifier, { connected: () => this.open++, received: (text) => this.note(text) }))
  },

  protocol(path) {
    const entries = performance.getEntriesByType(path ? "resource" : "navigation")
    return (path ? entries.find((entry) => entry.name.includes(path)) : entries[0])?.nextHopProtocol
  },
}
