// The token panel: which token the page's requests carry and how, what a token permits, and making one.

import {$, el, setText} from "./dom.js";
import {ask} from "./hub.js";
import {colour} from "./json.js";
import {MatcherRows} from "./matchers.js";
import {problemOf, sentence} from "./problem.js";
import {drawReport, explain} from "./token_report.js";

const CARRIED = {header: "in the Authorization header", cookie: "in the hub's cookie", none: ""};

export class TokenTool {
  constructor({settings, credentials}) {
    Object.assign(this, {settings, credentials});
    this.text = $("#token-text");
    this.#choices();
    this.#reader();
    this.#maker();
    credentials.addEventListener("choose", () => this.#say());
    credentials.addEventListener("refused", ({detail}) => setText($("#choice-problem"), `The hub makes no token for this page. ${detail}`));
    this.#say();
  }

  #choices() {
    for (const radio of document.querySelectorAll("input[name=source], input[name=carrier]")) {
      radio.checked = this.credentials[radio.name] === radio.value;
      radio.addEventListener("change", () => this.#choose({[radio.name]: radio.value}));
    }
    $("#source-made").disabled = !this.settings.mint;
    setText($("#cookie-name"), this.settings.cookie_name);
  }

  async #choose(choice) {
    const refused = await this.credentials.choose(choice).catch((error) => error.message);
    setText($("#choice-problem"), refused ?? "");
    for (const name of ["source", "carrier"]) $(`input[name=${name}][value=${this.credentials[name]}]`).checked = true;
  }

  #say() {
    const {source, carrier} = this.credentials;
    const which = source === "made" ? "its own token, for every topic" : "the token below";
    const text = carrier === "none" ? "This page sends no token." : `This page sends ${which}, ${CARRIED[carrier]}.`;
    for (const place of document.querySelectorAll("[data-credentials]")) setText(place, text);
  }

  #reader() {
    this.text.addEventListener("input", () => $("#token-report").replaceChildren());
    $("#use-token").addEventListener("click", () => this.#choose({source: "pasted", pasted: this.text.value}));
    $("#token-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.read();
    });
    $("#own-token").addEventListener("click", async () => {
      this.text.value = (await this.credentials.made(this.settings.mint.subscriber ? "subscriber" : "publisher").catch(() => null)) ?? "";
      this.read();
    });
    $("#own-token").hidden = !this.settings.mint;
  }

  async read() {
    const token = this.text.value.trim().replace(/^Bearer\s+/i, "");
    const place = $("#token-report");
    if (!token) return place.replaceChildren(el("p", {class: "muted"}, "Paste a token first."));
    try {
      const reports = await Promise.all(["publisher", "subscriber"].map((role) => explain(token, role)));
      const [{header, claims}] = reports;
      const contents = JSON.stringify({header, claims}, null, 2);
      place.replaceChildren(
        drawReport(reports[0], "publisher"), drawReport(reports[1], "subscriber"),
        el("details", {}, el("summary", {}, "What is written in it"), el("pre", {class: "box"}, el("code", {}, ...colour(contents)))),
      );
    } catch (error) {
      place.replaceChildren(el("p", {class: "problem"}, error.message));
    }
  }

  #maker() {
    $("#maker").hidden = !this.settings.mint;
    $("#make-legacy-field").hidden = !this.settings.legacy;
    const types = ["exact", "urlpattern"];
    this.publish = new MatcherRows($("#make-publish"), {types});
    this.subscribe = new MatcherRows($("#make-subscribe"), {types});
    this.publish.add({pattern: "https://example.com/books/1"});
    this.subscribe.add({type: "urlpattern", pattern: "https://example.com/books/:id"});
    for (const role of ["publish", "subscribe"]) $(`#add-make-${role}`).addEventListener("click", () => this[role].add({}, true));
    $("#make-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.make();
    });
  }

  async make() {
    const problem = $("#make-problem");
    const wire = ({values}) => values.map(({type, pattern}) => ({match: pattern, match_type: type}));
    try {
      const payload = $("#make-payload").value.trim();
      const body = {
        publish: wire(this.publish), subscribe: wire(this.subscribe), payload: payload ? JSON.parse(payload) : null,
        expires_in: Number($("#make-expires").value), legacy: $("#make-legacy").checked,
      };
      const response = await ask("token", body);
      if (!response.ok) throw new Error(sentence(await problemOf(response)));
      setText(problem, "");
      this.text.value = (await response.json()).token;
      this.read();
    } catch (error) {
      setText(problem, error instanceof SyntaxError ? "The payload is not JSON." : error.message);
    }
  }
}
