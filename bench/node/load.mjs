// A load generator with the clients that pages have: `eventsource` for streams, Action Cable's own for its WebSocket. It takes the
// options of harness/src/load.c that it knows, by the same names, and prints figures of the same shape, without the server's CPU.
import { readOptions } from "./options.mjs"
import { Outage } from "./outage.mjs"
import { Publisher } from "./publisher.mjs"
import { Readers } from "./readers.mjs"
import { summary } from "./summary.mjs"

const rest = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds))
const say = (phase) => process.stderr.write(`${phase}\n`)
const seconds = (from) => (performance.now() - from) / 1000

const options = readOptions(process.argv.slice(2))
// In place of the server the clients see a door that can be closed.
const outage = options.cutAfter > 0 ? await Outage.before(options) : null
const readers = new Readers(outage ? { ...options, port: outage.port } : options)

const began = performance.now()
await readers.open()
const connect = { seconds: seconds(began) }
say("connected")
await rest(2 * options.settle) // as long as the load generator in C, which rests before and after its publishers have come

const publisher = new Publisher(options, readers)
await publisher.publish(0, options.warmup)
readers.forget()
publisher.forget()

say("publishing")
const published = performance.now()
const onSent = (sent) => sent === options.cutAfter && outage?.cut(options.cutSeconds * 1000).then(() => readers.noteReturn())
const whole = await publisher.publish(options.warmup, options.messages, onSent)
if (outage) await readers.quiet(options.patience * 1000)
const took = seconds(published)
say("published")
await rest(options.linger)

const { delivered, expected, wrong, twice } = readers
console.log(JSON.stringify({
  subscribers: readers.standing, messages: options.messages, topics: options.topics, message_bytes: options.size, connect,
  publish: { accepted: publisher.accepted, refused: publisher.refused, answer_ms: summary(publisher.answers) },
  delivery: {
    expected, delivered, lost: expected - (delivered - twice), twice, wrong, seconds: took, per_second: delivered / took,
    latency_ms: summary(readers.latencies)
  },
  ...(outage && { outage: { back_ms: summary(readers.returns), away: readers.size - readers.returns.length } })
}))
const complete = outage !== null || (whole && wrong === 0) // what an outage loses is what is asked
process.exit(complete && publisher.refused === 0 ? 0 : 1)
