// Shows the quotes that there are, and from then on every quote that the hub sends.

const rows = document.querySelector("tbody")
const template = document.querySelector("template")
const connection = document.querySelector("#connection")
const money = (hundredths) => (hundredths / 100).toFixed(2)

function row({ symbol, name }) {
  const known = document.getElementById(symbol)
  if (known) return known
  const made = template.content.cloneNode(true).querySelector("tr")
  made.id = symbol
  made.querySelector(".symbol").textContent = symbol
  made.querySelector(".name").textContent = name
  // The new price comes from the hub, as for everybody.
  made.querySelector("button").onclick = () => fetch("/orders", { method: "POST", body: new URLSearchParams({ symbol, shares: 100 }) })
  rows.append(made)
  return made
}

function show(quote) {
  const { price, change, volume } = quote
  const shown = row(quote)
  shown.querySelector(".price").textContent = money(price)
  shown.querySelector(".change").textContent = (change > 0 ? "+" : "") + money(change)
  shown.querySelector(".volume").textContent = volume
  shown.className = change < 0 ? "down" : "up"
}

async function listen() {
  const answer = await fetch("/quotes").catch(() => null)
  if (!answer?.ok) return setTimeout(listen, 1000)
  const { since, quotes } = await answer.json()
  quotes.forEach(show)

  // Begins after the newest event from before the quotes were read. EventSource connects again by itself, and asks for what
  // came after the last event that it saw.
  const parameters = new URLSearchParams({ match_urlpattern: "/stocks/:symbol", last_event_id: since })
  const source = new EventSource(`/.well-known/mercure?${parameters}`)
  source.onopen = () => { connection.textContent = "live" }
  source.onerror = () => { connection.textContent = "reconnecting" }
  source.onmessage = (event) => show(JSON.parse(event.data))

  // The hub no longer knows that event (the server was started again, say): begin once more.
  source.addEventListener("mercure", (event) => {
    if (JSON.parse(event.data).type !== "gap") return
    source.close()
    listen()
  })
}

listen()
