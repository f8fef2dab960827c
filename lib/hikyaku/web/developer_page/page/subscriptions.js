// The live table of active subscriptions.

import {PAGE_MARK} from "./credentials.js";
import {el, setText} from "./dom.js";
import {clock, plural} from "./format.js";
import {nameOf} from "./matchers.js";

const SHOWN = 200;
const REDRAW_AFTER = 60;

export class Subscriptions {
  #rows = new Map();
  #documents = new Map();
  #timer = null;

  constructor({body, count, note}) {
    Object.assign(this, {body, count, note});
  }

  replace(documents) {
    this.#documents.clear();
    for (const document of documents) if (document.active) this.#documents.set(document.id, {document, since: null});
    setText(this.note, "");
    this.#later();
  }

  change(document) {
    if (!document.active) this.#documents.delete(document.id);
    else if (!this.#documents.has(document.id)) this.#documents.set(document.id, {document, since: new Date()});
    this.#later();
  }

  refused(sentence) {
    this.#documents.clear();
    this.#draw();
    setText(this.count, "");
    setText(this.note, sentence);
  }

  #later() {
    this.#timer ??= setTimeout(() => this.#draw(), REDRAW_AFTER);
  }

  #draw() {
    clearTimeout(this.#timer);
    this.#timer = null;
    const shown = new Map([...this.#documents].slice(0, SHOWN));
    for (const [id, row] of this.#rows) {
      if (shown.has(id)) continue;
      this.#rows.delete(id);
      row.classList.add("leaving");
      setTimeout(() => row.remove(), 500);
    }
    for (const [id, entry] of shown) {
      if (this.#rows.has(id)) continue;
      const row = drawRow(entry);
      this.#rows.set(id, row);
      this.body.append(row);
    }
    const hidden = this.#documents.size - shown.size;
    setText(this.count, plural(this.#documents.size, "subscription") + (hidden ? `, ${SHOWN} shown` : ""));
  }
}

function drawRow({document, since}) {
  const own = document.payload?.page === PAGE_MARK;
  const payload = document.payload ? JSON.stringify(document.payload) : "";
  const cell = (label, ...children) => el("td", {"data-label": label}, ...children);
  return el("tr", {class: own ? "own" : ""},
    cell("Matcher", el("code", {}, String(document.match ?? document.topic ?? ""))),
    cell("Type", nameOf(document.match_type ?? "uri_template")),
    cell("Subscriber", el("code", {class: "muted", title: String(document.subscriber)}, shorten(String(document.subscriber))), own && el("span", {class: "badge"}, "this page")),
    cell("Payload", payload && !own ? el("code", {}, payload.length > 120 ? `${payload.slice(0, 120)}…` : payload) : ""),
    cell("Since", el("span", {class: "muted"}, since ? clock(since).slice(0, 8) : "before this page")),
  );
}

const shorten = (id) => (id.length > 20 ? `…${id.slice(-12)}` : id);
