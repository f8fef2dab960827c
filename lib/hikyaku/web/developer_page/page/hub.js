// Where the hub is, and what it said about itself. Addresses are relative to the page, so that they hold wherever the
// hub is mounted; topics use the path that the hub knows itself by.

const page = new URL(".", document.baseURI);
export const hubUrl = new URL(page.pathname.replace(/\/ui\/$/, ""), page);

export async function loadSettings() {
  const response = await fetch(new URL("config.json", page));
  if (!response.ok) throw new Error(`The page's settings could not be read (${response.status}).`);
  return response.json();
}

// POSTs JSON to one of the page's helpers: token, explain, cookie.
export const ask = (helper, body) =>
  fetch(new URL(helper, page), {method: "POST", headers: {"content-type": "application/json"}, body: JSON.stringify(body)});

// pairs: [[name, value], …]
export function subscribeUrl(pairs, cursor = null) {
  const url = new URL(hubUrl);
  for (const [name, value] of pairs) url.searchParams.append(name, value);
  if (cursor) url.searchParams.set("last_event_id", cursor);
  return url;
}
