// Data as people read it: JSON indented and coloured, anything else as it is; long data cut, with a button for the rest.

import {el} from "./dom.js";
import {bytes} from "./format.js";

const SHOWN = 700;
const LINES = 14;
const LONGEST = 100_000;
const TOKENS = /("(?:[^"\\]|\\.)*")(\s*:)?|\b(true|false|null)\b|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

export function dataBlock(data) {
  const pretty = indent(data);
  const text = pretty ?? data;
  const cut = shorten(text);
  const code = el("code");
  const block = el("div", {class: "data"}, el("pre", {}, code));
  const show = (shown) => code.replaceChildren(...(pretty === null ? [shown] : colour(shown)));
  show(cut);
  if (cut !== text) block.append(expander(text, cut, show));
  if (text === "") block.firstChild.replaceWith(el("p", {class: "muted"}, "(no data)"));
  return block;
}

export function indent(text) {
  if (!/^\s*[[{]/.test(text) || text.length > 500_000) return null;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return null;
  }
}

function shorten(text) {
  let end = Math.min(text.length, SHOWN);
  for (let line = 0, at = -1; line < LINES; line += 1) {
    at = text.indexOf("\n", at + 1);
    if (at < 0) break;
    if (line === LINES - 1) end = Math.min(end, at);
  }
  // Never between the halves of a surrogate pair.
  if (/[\uD800-\uDBFF]/.test(text[end - 1] ?? "") && end < text.length) end -= 1;
  return text.slice(0, end);
}

function expander(text, cut, show) {
  const closed = `Show all (${bytes(new Blob([text]).size)})`;
  const button = el("button", {type: "button", class: "quiet", "aria-expanded": "false"}, closed);
  button.addEventListener("click", () => {
    const open = button.getAttribute("aria-expanded") === "false";
    button.setAttribute("aria-expanded", open);
    button.textContent = open ? "Show less" : closed;
    show(open ? text.slice(0, LONGEST) + (text.length > LONGEST ? "\n…" : "") : cut);
  });
  return button;
}

export function colour(text) {
  const parts = [];
  let from = 0;
  for (const match of text.matchAll(TOKENS)) {
    const [all, string, colon, word] = match;
    const kind = colon ? "key" : string ? "string" : word ? "word" : "number";
    const token = colon ? string : all;
    parts.push(text.slice(from, match.index), el("span", {class: `json-${kind}`}, token));
    from = match.index + token.length;
  }
  parts.push(text.slice(from));
  return parts;
}
