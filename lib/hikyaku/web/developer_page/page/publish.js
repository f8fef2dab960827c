// The panel that publishes.

import {$, copyButton, el, setText} from "./dom.js";
import {publishLine} from "./curl.js";
import {milliseconds} from "./format.js";
import {hubUrl} from "./hub.js";
import {MatcherRows} from "./matchers.js";
import {problemOf, sentence} from "./problem.js";
import {whyRefused} from "./token_report.js";

export class Publish {
  constructor({credentials, register, onType}) {
    Object.assign(this, {credentials, register, onType});
    this.form = $("#publish-form");
    this.output = $("#publish-result");
    this.topics = new MatcherRows($("#topics"), {types: ["exact"], noun: "topic", onChange: () => this.#drawCurl()});
    this.topics.add({pattern: "https://example.com/books/1"});
    $("#add-topic").addEventListener("click", () => this.topics.add({}, true));
    this.form.addEventListener("input", () => this.#drawCurl());
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.publish();
    });
    $("#publish-data").addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.form.requestSubmit();
    });
    $("#publish-curl").parentElement.after(copyButton(() => $("#publish-curl").textContent));
    for (const change of ["choose", "made"]) credentials.addEventListener(change, () => this.#drawCurl());
    this.#drawCurl();
  }

  // [[name, value], …]: what is filled in, no more
  get fields() {
    const fields = this.topics.values.map(({pattern}) => ["topic", pattern]);
    fields.push(["data", $("#publish-data").value]);
    if ($("#publish-private").checked) fields.push(["private", "on"]);
    for (const name of ["id", "type", "retry"]) {
      const value = $(`#publish-${name}`).value.trim();
      if (value) fields.push([name, value]);
    }
    return fields;
  }

  async publish() {
    const fields = this.fields;
    this.onType($("#publish-type").value.trim());
    try {
      await this.#send(fields);
    } catch {
      this.#say("bad", "The hub does not answer.");
    }
  }

  async #send(fields, again = true) {
    const {headers, credentials, token} = await this.credentials.request("publisher");
    const publish = this.register.begin(this.topics.values.map(({pattern}) => pattern));
    const response = await fetch(hubUrl, {method: "POST", headers, credentials, body: new URLSearchParams(fields)});
    const took = performance.now() - publish.at;
    if (response.status === 401 && again && this.credentials.isOwn(token)) {
      this.credentials.forget(token);
      return this.#send(fields, false);
    }
    if (!response.ok) return this.#refused(await problemOf(response));
    const id = await response.text();
    this.register.settle(publish, id);
    this.#say("good", `${response.status}, answered in ${milliseconds(took)}, id `, el("code", {}, id));
  }

  async #refused(problem) {
    this.#say("bad", sentence(problem));
    if (problem.status !== 401 && problem.status !== 403) return;
    const why = await whyRefused(await this.credentials.token("publisher"), "publisher");
    if (why) this.output.append(el("p", {}, why, " ", el("a", {href: "#token"}, "See the token")));
  }

  #say(kind, ...parts) {
    this.output.dataset.kind = kind;
    this.output.replaceChildren(el("p", {}, ...parts));
  }

  async #drawCurl() {
    const token = await this.credentials.token("publisher").catch(() => null);
    setText($("#publish-curl"), publishLine(this.fields, token));
  }
}
