// Types of hikyaku-presence.js, which brings hikyaku.js along.
import "./hikyaku.js";

/** What `hikyaku_payload` of the application says of a user, or the id alone. */
export interface User {
  id: string | number;
  [name: string]: unknown;
}

export interface Presence {
  here: User[];
  /** Since the event before. Of the first event: nobody. */
  joined: User[];
  left: User[];
}

/** One subscription of somebody, as the hub describes it. */
export interface SubscriptionDocument {
  subscriber: string;
  active: boolean;
  payload?: Partial<User> | null;
}

/** What the time is, and what happens later. */
export interface Clock {
  now(): number;
  setTimeout(action: () => void, milliseconds: number): unknown;
  clearTimeout(timer: unknown): void;
}

/** What follows from subscriptions for users. */
export class Roster {
  constructor(options: {grace?: number; onchange(presence: Presence): void; environment?: Clock});
  readonly here: User[];
  /** An event of the hub's. */
  apply(document: SubscriptionDocument): void;
  /** Events may be missing from now on. */
  doubt(): void;
  /** A list is asked for now. */
  expect(): void;
  /** The list: subscribers and their payloads. */
  take(list: [string, Partial<User>][]): void;
  close(): void;
}

/** `<hikyaku-presence signed-stream-name src window grace>`; its attribute `count` is how many users are here. */
export interface HikyakuPresenceElement extends HTMLElement {
  readonly here: User[];
}

/** Dispatched by the element, bubbling; beside `hikyaku:refused`, whose preventDefault() keeps the page from being refreshed. */
export interface HikyakuPresenceEvents {
  "hikyaku:presence": CustomEvent<Presence>;
}

declare global {
  interface HTMLElementTagNameMap {
    "hikyaku-presence": HikyakuPresenceElement;
  }
  interface HTMLElementEventMap extends HikyakuPresenceEvents {}
  interface DocumentEventMap extends HikyakuPresenceEvents {}
  interface WindowEventMap extends HikyakuPresenceEvents {}
}
