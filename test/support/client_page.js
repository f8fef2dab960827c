// What the pages of ClientSite do: they remember what their elements say. `data-without` names what the browser is not to have,
// `data-client` where hikyaku.js is.

for (const name of document.documentElement.dataset.without.split(" ").filter(Boolean)) {
  if (name === "locks") Object.defineProperty(navigator, "locks", {value: undefined});
  else delete window[name];
}

// Reloads itself so many times, now sooner and now later.
const reloads = Number(new URLSearchParams(location.search).get("reloads") ?? 0);
window.reloaded = Number(sessionStorage.reloaded ?? 0);
if (window.reloaded < reloads) {
  sessionStorage.reloaded = window.reloaded + 1;
  setTimeout(() => location.reload(), Math.random() * 200);
}

window.seen = [];
window.states = [];

document.addEventListener("hikyaku:event", ({detail}) => window.seen.push(detail.data));
for (const state of ["connected", "caught-up", "reconnecting", "gap", "refused"]) {
  document.addEventListener(`hikyaku:${state}`, ({detail}) => window.states.push([state, detail.reason ?? null]));
}

window.messages = [];
const element = (name, cursor) => {
  const each = document.createElement("hikyaku-stream-source");
  each.setAttribute("signed-stream-name", `signed:${name}:${Math.random()}`);
  if (cursor) each.setAttribute("cursor", cursor);
  each.addEventListener("message", ({data}) => window.messages.push(data));
  return document.body.appendChild(each);
};
Object.assign(window, {element});

const {Hikyaku} = await import(document.documentElement.dataset.client);
window.Hikyaku = Hikyaku;
