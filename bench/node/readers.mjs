// N clients that read, each with a connection of its own, and what has come to them.
import { EventSource } from "eventsource"
import ActionCable from "@rails/actioncable"
import WebSocket from "ws"
import { fill } from "./options.mjs"
import { now, read } from "./marker.mjs"

// Action Cable's client is made for pages.
ActionCable.adapters.WebSocket = WebSocket
globalThis.addEventListener ??= () => {}
globalThis.removeEventListener ??= () => {}

const stream = (options, index, topic, handlers) => {
  const source = new EventSource(`http://${options.host}:${options.port}${fill(options.subscribePath, topic, index)}`)
  source.onopen = handlers.connected
  source.onmessage = (event) => handlers.received(event.data)
  return null
}

const cable = (options, index, topic, handlers) => {
  const consumer = ActionCable.createConsumer(`ws://${options.host}:${options.port}${fill(options.subscribePath, topic, index)}`)
  const { identifier } = JSON.parse(fill(options.cable, topic, index))
  return consumer.subscriptions.create(JSON.parse(identifier), handlers)
}

export class Readers {
  latencies = []
  returns = [] // how long after the cut each was there again
  delivered = 0
  expected = 0
  twice = 0
  #got = [] // by client, the messages that it has
  #expected = [] // by topic, the messages
  #standing = new Set()
  #subscriptions = []
  #waiting = []
  #last = 0

  constructor(options) {
    this.options = options
    this.size = options.subscribers
    this.forget()
  }

  get standing() {
    return this.#standing.size
  }

  get wrong() {
    const missed = (index) => [...this.#expected[this.#topic(index)]].some((message) => !this.#got[index].has(message))
    return this.#got.filter((got, index) => got.twice || missed(index)).length
  }

  async open() {
    const connect = this.options.cable ? cable : stream
    for (let index = 0; index < this.size; index++) {
      const handlers = { connected: () => this.#connected(index), received: (text) => this.#received(index, text) }
      this.#subscriptions.push(connect(this.options, index, this.#topic(index), handlers))
    }
    await this.#until(() => this.standing === this.size, this.options.timeout * 1000, `not all clients are connected`)
  }

  // Begins a new count.
  forget() {
    this.latencies = []
    this.delivered = this.expected = this.twice = 0
    this.#got = Array.from({ length: this.size }, () => new Set())
    this.#expected = Array.from({ length: this.options.topics }, () => new Set())
  }

  expect(message) {
    const topic = message % this.options.topics
    this.#expected[topic].add(message)
    this.expected += Math.ceil((this.size - topic) / this.options.topics)
  }

  speak(message, text) {
    this.#subscriptions[message % this.size].perform("speak", { text })
  }

  // From now on each client that connects has come back.
  noteReturn() {
    this.#standing.clear()
    this.cutAt = now()
  }

  async all() {
    return this.#until(() => this.delivered >= this.expected, this.options.timeout * 1000, "not all messages are delivered")
  }

  // Until everything is there, or nothing has come for so long.
  async quiet(milliseconds) {
    this.#last = performance.now()
    while (this.delivered < this.expected && performance.now() - this.#last < milliseconds) await this.#news(100)
  }

  #topic(index) {
    return index % this.options.topics
  }

  #connected(index) {
    if (this.cutAt && !this.#standing.has(index)) this.returns.push(now() - this.cutAt)
    this.#standing.add(index)
    this.#tell()
  }

  #received(index, text) {
    const at = now()
    for (const { sent, message } of read(text)) {
      if (!this.#expected[this.#topic(index)].has(message)) continue // of the warm-up
      const got = this.#got[index]
      if (got.has(message)) this.twice += got.twice = 1
      got.add(message)
      this.delivered++
      this.latencies.push(at - sent)
    }
    this.#last = performance.now()
    if (this.delivered >= this.expected) this.#tell()
  }

  #tell() {
    for (const resolve of this.#waiting.splice(0)) resolve()
  }

  #news(milliseconds) {
    return new Promise((resolve) => {
      this.#waiting.push(resolve)
      setTimeout(resolve, milliseconds)
    })
  }

  async #until(done, milliseconds, complaint) {
    const deadline = performance.now() + milliseconds
    while (!done()) {
      if (performance.now() > deadline) {
        process.stderr.write(`time is up: ${complaint}\n`)
        return false
      }
      await this.#news(100)
    }
    return true
  }
}
