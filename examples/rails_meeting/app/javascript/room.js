import {Hikyaku} from "hikyaku"
import {Expiring, Replies, Throttle, byType, ephemeral, send} from "hikyaku-send"

const $ = (selector) => document.querySelector(selector)
const {hub, path, user, since} = $("#room").dataset
const put = (selector, text) => { $(selector).textContent = text }
const make = (tag, text, attributes = {}) => Object.assign(document.createElement(tag), {textContent: text, ...attributes})

// Typing indicators.
const typing = new Throttle(`${path}/typing`, {perSecond: 0.5})
const typists = new Expiring({seconds: 5, onchange: (names) => put("#typists", [...names.values()].map((name) => `${name} is typing`).join(", "))})
$("[name=text]").addEventListener("input", () => typing.send())

// Cursors: positions are fractions of the board.
const cursor = new Throttle(`${path}/cursor`)
const cursors = new Expiring({seconds: 5, onchange: (all) => $("#board").replaceChildren(...[...all.values()].map(pointer))})
$("#board").addEventListener("pointermove", ({clientX, clientY}) => {
  const {left, top, width, height} = $("#board").getBoundingClientRect()
  cursor.send({x: (clientX - left) / width, y: (clientY - top) / height})
})

function pointer({name, x, y}) {
  const dot = make("i", name, {className: "pointer"})
  dot.style.translate = `${x * $("#board").clientWidth}px ${y * $("#board").clientHeight}px`
  return dot
}

// A request with a direct answer. The message itself arrives from the hub, as in every other page.
$("#new_message").addEventListener("submit", async (event) => {
  event.preventDefault()
  typing.cancel()
  const field = $("[name=text]")
  try {
    const text = field.value
    await send(`${path}/messages`, {text})
    if (field.value === text) field.value = "" // else the next message is being typed
    put("#complaint", "")
  } catch (error) {
    put("#complaint", error.answer?.error ?? error.message)
  }
})

function hear({id, user: author, name, text}) {
  typists.delete(author)
  if ($(`#message-${id}`)) return // the application rendered it with the page
  const line = make("p", "", {id: `message-${id}`})
  line.append(make("b", name), " ", make("span", text))
  $("#messages").append(line)
}

// A request that a job answers.
const replies = new Replies()
$("#summarise").addEventListener("click", async () => {
  put("#summary", "…")
  put("#summary", await replies.ask(`${path}/summary`).catch((error) => error.message))
})

// One stream for all of it.
Hikyaku.subscribe(hub, {
  match: [`${path}/messages`, `${path}/now`, `/users/${user}/replies`],
  lastEventId: since,
  token: () => send(`${path}/token`),
  ...byType({
    typing: ephemeral(({id, name}) => typists.set(id, name)),
    cursor: ephemeral((position) => cursors.set(position.id, position)),
    message: {onmessage: ({data}) => hear(JSON.parse(data))},
    reply: replies,
    state: {onstate: (state) => (state === "gap" ? location.reload() : put("#connection", state))},
  }),
})
