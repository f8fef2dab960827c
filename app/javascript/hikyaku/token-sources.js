// Who lets readers in: a token endpoint is asked with names, and answers with what they stand for, and a token that grants it.

import {SECOND} from "./limits.js";
import {fetchWithin, retryAfterOf} from "./requests.js";
import {claimsOf} from "./tokens.js";

// It is of no use to ask again.
export class Refusal extends Error {
  constructor(reason, status = null) {
    super(reason);
    Object.assign(this, {reason, status});
  }
}

// It may be of use, later.
export class Failure extends Error {
  constructor(reason, {status = null, retryAfter = 0} = {}) {
    super(reason);
    Object.assign(this, {reason, status, retryAfter});
  }
}

// The application's token endpoint: signed names are exchanged for topics and a token that grants them.
//
//     POST {"names": ["signed", …]} → {"hub": URL, "token": JWT, "expires_at": seconds, "topics": {"signed": topic},
//                                      "refused": {"signed": reason}, "types": {"signed": type}, "patterns": {"signed": pattern},
//                                      "failed": ["signed", …], "singly": ["signed", …]}
//
// An event belongs to the topic whose type it has: the type is the topic, unless `types` says another. With a pattern come the
// hub's own events about the topic's subscriptions, to which the pattern matches. What is answered for a name of `singly` says nothing of
// other names of its topic, and may be another topic next time. Names of `failed` are to be asked about again.
export class TokenEndpoint {
  #environment;
  #url;

  constructor(environment, {endpoint}) {
    this.#environment = environment;
    this.#url = endpoint;
  }

  async ask(names) {
    const headers = {"Content-Type": "application/json", Accept: "application/json"};
    let response;
    try {
      // A redirection leads to a page, where somebody is to sign in.
      response = await fetchWithin(this.#environment, this.#url,
        {method: "POST", headers, body: JSON.stringify({names}), credentials: "same-origin", redirect: "manual"});
    } catch {
      throw new Failure("the token endpoint does not answer");
    }
    const {status} = response;
    if (status >= 500 || status === 408 || status === 425 || status === 429) {
      throw new Failure(`the token endpoint answered ${status}`, {status, retryAfter: retryAfterOf(response, this.#environment)});
    }
    if (status !== 200) throw new Refusal({401: "unauthorized", 403: "forbidden", 404: "not_found"}[status] ?? "rejected", status);
    return this.#read(names, await response.json().catch(() => null), Date.parse(response.headers.get("date") ?? ""));
  }

  // The life of the token is counted from the server's own time, which is told in whole seconds: the browser's clock may be wrong.
  #read(names, answer, servedAt) {
    if (typeof answer?.token !== "string" && Object.keys(answer?.topics ?? {none: true}).length > 0) throw new Failure("the token endpoint's answer is not understood");
    const now = Number.isNaN(servedAt) ? this.#environment.now() : servedAt;
    const lifetime = Math.max(SECOND, Number(answer.expires_at) * SECOND - now - SECOND || Infinity);
    const keys = new Map();
    const refused = new Map();
    const failed = new Set(answer.failed);
    for (const name of names) {
      const topic = answer.topics?.[name];
      const pattern = answer.patterns?.[name];
      const matchers = [["match", topic], ...(pattern ? [["match_urlpattern", pattern]] : [])];
      if (typeof topic === "string") keys.set(name, {key: topic, type: answer.types?.[name] ?? topic, matchers});
      else if (!failed.has(name)) refused.set(name, answer.refused?.[name] ?? "invalid");
    }
    return {hub: new URL(answer.hub, this.#url).href, token: answer.token ?? null, lifetime, keys, refused, failed, credentials: "same-origin", singly: new Set(answer.singly)};
  }

  disown() {}
}

// No token endpoint: the page knows the hub, the topics and a token, if it takes one, or how to get one. A name is the list of the matchers.
export class PageTokens {
  #want;
  #disowned = new Set();

  constructor(_environment, want) {
    this.#want = want;
  }

  async ask(names, readers, due) {
    const {hub, credentials} = this.#want;
    const token = await this.#token([...readers], due);
    const {exp, iat} = claimsOf(token ?? "");
    const lifetime = [...readers].some((reader) => reader.want.asks) && exp > iat ? (exp - iat) * SECOND : Infinity;
    const keys = new Map(names.map((name) => [name, {key: name, type: null, matchers: JSON.parse(name)}]));
    return {hub, token, lifetime, credentials, keys, refused: new Map(), failed: new Set(), singly: new Set()};
  }

  // A token that the hub did not take is not shown again.
  disown(token) {
    this.#disowned.add(token);
  }

  // The one that lasts longest of those that the tabs have brought.
  async #token(readers, due) {
    const usable = readers.map((reader) => reader.token).filter((token) => !this.#disowned.has(token));
    const asking = readers.find((reader) => reader.want.asks);
    if (asking && (due || usable.length === 0)) return asking.token = await asking.line.askForToken(asking);
    if (usable.length === 0) throw new Refusal("unauthorized", 401);
    return usable.reduce((best, token) => ((claimsOf(token ?? "").exp ?? 0) > (claimsOf(best ?? "").exp ?? 0) ? token : best));
  }
}
