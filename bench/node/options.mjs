// The options of the load generator, by the names that harness/src/load.c has for them; a few are of this one alone.
import { parseArgs } from "node:util"

const NUMBERS = {
  port: 0, "publish-port": 0, subscribers: 100, messages: 10, warmup: 0, publishers: 1, topics: 1, size: 200, together: 1, rate: 0,
  settle: 300, linger: 0, timeout: 60,
  "cut-after": 0, // messages; then every client is cut off
  "cut-seconds": 1, // and none comes in for so long
  patience: 10, // seconds of silence after which what has not come is lost
}
const TEXTS = {
  host: "127.0.0.1", "subscribe-path": "/", cable: undefined, "publish-path": "/", "publish-prefix": "", "publish-suffix": "",
}
const SWITCHES = ["sync", "speak"]
const LISTS = ["publish-header", "pid"] // the server's processes are measured by whoever started this

const camel = (name) => name.replace(/-(\w)/g, (_, letter) => letter.toUpperCase())

export function readOptions(words) {
  const known = Object.fromEntries([
    ...[...Object.keys(NUMBERS), ...Object.keys(TEXTS)].map((name) => [name, { type: "string" }]),
    ...SWITCHES.map((name) => [name, { type: "boolean" }]),
    ...LISTS.map((name) => [name, { type: "string", multiple: true }]),
  ])
  const { values } = parseArgs({ args: words, options: known })
  const options = {}
  for (const [name, value] of Object.entries(NUMBERS)) options[camel(name)] = Number(values[name] ?? value)
  for (const [name, value] of Object.entries(TEXTS)) options[camel(name)] = values[name] ?? value
  for (const name of SWITCHES) options[name] = values[name] ?? false
  options.publishHeader = values["publish-header"] ?? []
  options.publishPort ||= options.port
  return options
}

// {t} is the number of the topic, {n} that of the subscriber or message.
export const fill = (text, t, n) => text.replaceAll("{t}", t).replaceAll("{n}", n)
