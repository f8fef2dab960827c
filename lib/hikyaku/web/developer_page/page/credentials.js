// Which token the page's requests carry, and how: in the Authorization header, in the hub's cookie, or none at all.
//
//   source   "made"    by this hub for this page, for every topic; renewed before it expires
//            "pasted"  by the person
//   carrier  "header" | "cookie" | "none"

import {ask} from "./hub.js";
import {problemOf, sentence} from "./problem.js";

const LIFETIME = 3600;
const RENEW_BEFORE = 60;
const ASK_AGAIN_AFTER = 10;
const EVERYTHING = [{match: "*"}];
const ACTIONS = {publisher: "publish", subscriber: "subscribe"};

// Known to this page alone until its own subscriptions show it: how the table of subscriptions knows them.
export const PAGE_MARK = Math.random().toString(36).slice(2, 10);

// Events: "choose" when another token or carrier was chosen, "made" when the page has a new token of its own, "refused"
// (detail: a sentence) when the hub does not make one for it.
export class Credentials extends EventTarget {
  source = "made";
  carrier = "header";
  pasted = "";
  #made = new Map();

  // mint: for which roles the hub can make tokens, and whether one token can serve both; null for none
  constructor({mint}) {
    super();
    this.mint = mint;
    if (!mint) this.source = "pasted";
  }

  // The token of the page's choice for a role, or null.
  async token(role) {
    if (this.carrier === "none") return null;
    return this.source === "made" ? this.made(role) : this.pasted.trim() || null;
  }

  // The page's own token, whatever the choice: the figures and the table use it. Null where the hub cannot make one.
  async made(role) {
    if (!this.mint?.[role]) return null;
    const key = this.mint.together ? "both" : role;
    const kept = this.#made.get(key);
    if (kept && Date.now() / 1000 < kept.expires - RENEW_BEFORE) return kept.token;
    const entry = {expires: Infinity, token: this.#make(this.mint.together ? Object.keys(ACTIONS) : [role])};
    this.#made.set(key, entry);
    try {
      entry.token = await entry.token;
    } catch (error) {
      this.#made.delete(key);
      throw error;
    }
    entry.expires = Date.now() / 1000 + (entry.token ? LIFETIME : RENEW_BEFORE + ASK_AGAIN_AFTER);
    if (entry.token) this.dispatchEvent(new Event("made"));
    return entry.token;
  }

  isOwn(token) {
    return token !== null && [...this.#made.values()].some((entry) => entry.token === token);
  }

  // After a restart the hub may sign with another key: forget the token that it no longer knows.
  forget(token) {
    for (const [key, entry] of this.#made) if (entry.token === token) this.#made.delete(key);
  }

  // Puts a new token of the page's own into the hub's cookie. False where the cookie holds another's.
  async renewCookie() {
    if (this.source !== "made" || !this.mint) return false;
    this.#made.clear();
    return (await this.#keepCookie()) === null;
  }

  // What fetch() needs for the chosen carrier. Without a cookie carrier no cookie is sent, so that "none" is none.
  async request(role) {
    if (this.carrier === "cookie") return {headers: {}, credentials: "same-origin", token: null};
    const token = await this.token(role);
    return {headers: token ? {authorization: `Bearer ${token}`} : {}, credentials: "omit", token};
  }

  // → a sentence where the choice could not be carried out, or null
  async choose({source = this.source, carrier = this.carrier, pasted = this.pasted}) {
    Object.assign(this, {source, carrier, pasted});
    const refused = carrier === "cookie" ? await this.#keepCookie() : null;
    this.dispatchEvent(new Event("choose"));
    return refused;
  }

  async #keepCookie() {
    const token = await this.token("subscriber");
    const response = await ask("cookie", {token});
    return response.ok ? null : sentence(await problemOf(response));
  }

  async #make(roles) {
    const body = {expires_in: LIFETIME, payload: {page: PAGE_MARK}};
    for (const role of roles) body[ACTIONS[role]] = EVERYTHING;
    const response = await ask("token", body);
    if (response.ok) return (await response.json()).token;
    this.dispatchEvent(new CustomEvent("refused", {detail: sentence(await problemOf(response))}));
    return null;
  }
}
