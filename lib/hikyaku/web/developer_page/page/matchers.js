// Rows in which a person writes matchers, and what this page can tell about which matcher selects a topic.

import {el} from "./dom.js";
import {hubUrl} from "./hub.js";

const NAMES = {exact: "Exact", urlpattern: "URL pattern", uri_template: "Topic (0.x)"};
const PARAMETERS = {exact: "match", urlpattern: "match_urlpattern", uri_template: "topic"};

export const parameterOf = ({type}) => PARAMETERS[type] ?? `match_${type}`;
export const nameOf = (type) => NAMES[type] ?? type;

// A list of rows (type, pattern, remove) inside `list`. onChange is called at each edit.
export class MatcherRows {
  constructor(list, {types, onChange = () => {}, noun = "matcher"}) {
    Object.assign(this, {list, types, onChange, noun});
  }

  add({type = this.types[0], pattern = ""} = {}, focus = false) {
    const options = this.types.map((each) => el("option", {value: each, selected: each === type}, nameOf(each)));
    const input = el("input", {
      type: "text", ".value": pattern, "aria-label": `Pattern of the ${this.noun}`, autocomplete: "off",
      autocapitalize: "off", spellcheck: "false", placeholder: "https://example.com/books/:id", oninput: this.onChange,
    });
    const select = el("select", {"aria-label": `Type of the ${this.noun}`, onchange: this.onChange}, ...options);
    const remove = el("button", {type: "button", class: "icon", title: "Remove", "aria-label": `Remove this ${this.noun}`}, "×");
    const row = el("li", {class: "row"}, this.types.length > 1 && select, input, remove);
    remove.addEventListener("click", () => {
      row.remove();
      this.onChange();
    });
    this.list.append(row);
    if (focus) input.focus();
    this.onChange();
  }

  get values() {
    const rows = [...this.list.children].map((row) => ({
      type: row.querySelector("select")?.value ?? this.types[0],
      pattern: row.querySelector("input").value.trim(),
    }));
    return rows.filter(({pattern}) => pattern !== "");
  }
}

// true, false, or null where only the hub can tell (no URLPattern in this browser, or a URI template).
export function matches({type, pattern}, topic) {
  if (pattern === "*" || pattern === topic) return true;
  if (type === "exact") return false;
  if (type !== "urlpattern" || !("URLPattern" in window)) return null;
  try {
    return new URLPattern(pattern, hubUrl.href).test(topic, hubUrl.href);
  } catch {
    return null;
  }
}
