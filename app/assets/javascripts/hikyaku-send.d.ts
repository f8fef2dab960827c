// Types of hikyaku-send.js. The file imports nothing; its handlers fit the streams of hikyaku.js.
import type {Handlers, HikyakuEvent} from "./hikyaku.js";

export interface SendOptions {
  /** "POST" unless told otherwise. */
  method?: "POST" | "PUT" | "PATCH" | "DELETE";
  /** The time limit for the answer: 30 by default, at most 3,600. */
  seconds?: number;
}

/**
 * Sends JSON to the page's own application, with the session cookie, the CSRF token and a correlation. Resolves to the body of the
 * answer: parsed if it is JSON, else a text; null if it is empty.
 * @throws SendError the application refuses the request, redirects it, does not answer, or cannot be reached
 * @throws TypeError the address belongs to another origin
 * @throws RangeError `seconds` is out of range
 */
export function send<Answer = unknown>(url: string | URL, body?: unknown, options?: SendOptions): Promise<Answer>;

export class SendError extends Error {
  constructor(message: string, about: Pick<SendError, "reason"> & Partial<Pick<SendError, "status" | "answer" | "retryAfter">>);
  /**
   * - `network`: the page could not reach the application
   * - `timeout`: the application did not answer in time
   * - `status`: the application answered with the status `status`
   * - `redirect`: the application redirects, perhaps to a sign-in page
   * - `answer`: an update answered the request with the error `answer`
   * - `refused`: the hub or the application refuses the stream of the answers
   * - `gap`: events of that stream are missing, and the answer may be among them
   * - `limit`: 100 requests wait already
   */
  readonly reason: "network" | "timeout" | "status" | "redirect" | "answer" | "refused" | "gap" | "limit";
  readonly status: number | null;
  readonly answer: unknown;
  /** Seconds, from the header Retry-After. */
  readonly retryAfter: number | null;
}

export interface ThrottleOptions {
  /** POSTs a second: 10 by default, at most 60. */
  perSecond?: number;
  /** Receives the error of each failed POST. By default the console shows a warning. */
  onerror?(error: Error): void;
}

/** Sends the first data at once, and then at most `perSecond` POSTs a second. While data wait, newer data replace them. */
export class Throttle {
  /** @throws RangeError `perSecond` is out of range */
  constructor(url: string | URL, options?: ThrottleOptions);
  send(body?: unknown): void;
  /** Drops the data that wait. */
  cancel(): void;
}

/** Handlers for Hikyaku.subscribe() and Source.stream(). */
export type SendHandlers = Required<Pick<Handlers, "onmessage" | "onstate">>;

/** Handlers that call `handler` with the parsed data of each new update, but not with replayed updates and not with this page's own. */
export function ephemeral<Data = any>(handler: (data: Data, event: HikyakuEvent) => void): SendHandlers;

export interface ExpiringOptions<Id, Value> {
  /** The life of a value after the page has set it. */
  seconds: number;
  /** Receives all present values when a value arrives, changes or expires. */
  onchange(values: Map<Id, Value>): void;
}

/** Values by ids that expire: at most 1,000, beyond which the oldest id gives way. */
export class Expiring<Id = string | number, Value = unknown> {
  /** @throws RangeError `seconds` is out of range */
  constructor(options: ExpiringOptions<Id, Value>);
  set(id: Id, value: Value): void;
  delete(id: Id): void;
}

export interface AskOptions {
  /** The time limit for the answer: 30 by default, at most 3,600. */
  seconds?: number;
}

/** Handlers for the stream of the answers, and the requests. */
export class Replies implements SendHandlers {
  onmessage: SendHandlers["onmessage"];
  onstate: SendHandlers["onstate"];
  /**
   * Sends a POST as soon as the stream is open. Resolves to the body of the answer or, after 202, to `answer` of the update with the
   * same correlation.
   * @throws SendError the request failed, or has no answer
   * @throws RangeError `seconds` is out of range
   */
  ask<Answer = unknown>(url: string | URL, body?: unknown, options?: AskOptions): Promise<Answer>;
}

/** Handlers that pass each event to the handlers of its type, and each state of the stream to all handlers. */
export function byType(handlers: Record<string, Partial<SendHandlers>>): SendHandlers;
