// What the server publishes goes into the page: that is all there is to it.

const main = document.querySelector("main")
const put = (selector, value) => { main.querySelector(selector).textContent = value }

const show = {
  stock: ({ id, stock }) => put(`#book-${id} .stock`, stock),
  visitors: ({ visitors }) => put("#visitors", visitors),
  takings: ({ takings }) => put("#takings", takings)
}

// EventSource connects again by itself, and asks for what came after the last event that it saw.
const source = new EventSource(main.dataset.hub, { withCredentials: true })
source.onopen = () => put("#connection", "live")
source.onerror = () => put("#connection", "reconnecting")

for (const [type, change] of Object.entries(show)) {
  source.addEventListener(type, (event) => change(JSON.parse(event.data)))
}

// The hub no longer knows that event (the server was started again, say): read everything once more.
source.addEventListener("mercure", async (event) => {
  if (JSON.parse(event.data).type !== "gap") return
  const { books, visitors, takings } = await (await fetch("/books.json")).json()
  books.forEach(show.stock)
  show.visitors({ visitors })
  if (takings != null) show.takings({ takings })
  put("#connection", "caught up")
})

// Buttons work without this too; with it the page stays where it is, and the change comes from the hub as for everybody.
document.addEventListener("submit", (event) => {
  const form = event.target
  if ("whole" in form.dataset) return
  event.preventDefault()
  fetch(form.action, { method: "POST", body: new FormData(form), redirect: "manual" })
})
