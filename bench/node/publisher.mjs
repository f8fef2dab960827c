// Publishes messages over HTTP, or as commands of the clients themselves, and times the answers.
import { Agent, request } from "node:http"
import { fill } from "./options.mjs"
import { now, write } from "./marker.mjs"

export class Publisher {
  answers = []
  accepted = 0
  refused = 0

  constructor(options, readers) {
    this.options = options
    this.readers = readers
    this.agent = new Agent({ keepAlive: true, maxSockets: options.publishers })
    this.headers = Object.fromEntries(options.publishHeader.map((line) => line.split(/: */, 2)))
    this.free = options.publishers
    this.waiting = []
  }

  forget() {
    this.answers = []
    this.accepted = this.refused = 0
  }

  // Resolves to whether all is delivered.
  async publish(first, count, onSent = () => {}) {
    const { sync, together, rate } = this.options
    const started = performance.now()
    for (let sent = 0; sent < count; sent++) {
      if (sync && sent % together === 0 && !(await this.#done())) return false
      const due = rate > 0 ? started + (sent / rate) * 1000 - performance.now() : 0
      if (due > 0) await new Promise((resolve) => setTimeout(resolve, due))
      await this.#send(first + sent)
      onSent(sent + 1)
    }
    return this.options.cutAfter > 0 ? this.#answered() : this.#done()
  }

  async #done() {
    return (await this.#answered()) && (await this.readers.all())
  }

  async #answered() {
    while (this.free < this.options.publishers) await new Promise((resolve) => this.waiting.push(resolve))
    return true
  }

  async #send(message) {
    if (this.options.speak) {
      this.readers.expect(message)
      this.readers.speak(message, write(message, this.options.size))
      this.accepted++
      return
    }
    while (this.free === 0) await new Promise((resolve) => this.waiting.push(resolve))
    this.free--
    this.readers.expect(message)
    this.#post(message).then((status) => {
      if (status >= 200 && status < 300) this.accepted++
      else if (this.refused++ === 0) process.stderr.write(`publisher refused: ${status}\n`)
      this.free++
      for (const resolve of this.waiting.splice(0)) resolve()
    })
  }

  #post(message) {
    const { host, publishPort, publishPath, publishPrefix, publishSuffix, size, topics } = this.options
    const topic = message % topics
    const body = fill(publishPrefix, topic, message) + write(message, size) + fill(publishSuffix, topic, message)
    const sent = now()
    return new Promise((resolve) => {
      const headers = { ...this.headers, "content-type": "application/x-www-form-urlencoded", "content-length": Buffer.byteLength(body) }
      const options = { host, port: publishPort, path: fill(publishPath, topic, message), method: "POST", agent: this.agent, headers }
      const asked = request(options, (response) => {
        response.resume()
        response.on("end", () => {
          this.answers.push(now() - sent)
          resolve(response.statusCode)
        })
      })
      asked.on("error", (error) => resolve(error.message))
      asked.end(body)
    })
  }
}
