// Types of hikyaku-presence.js.

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

/** What follows from subscriptions for users. */
export class Roster {
  constructor(options: {grace?: number; onchange(presence: Presence): void; world?: object});
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

/** <hikyaku-presence> */
export interface HikyakuPresenceElement extends HTMLElement {
  readonly here: User[];
}

declare global {
  interface HTMLElementTagNameMap {
    "hikyaku-presence": HikyakuPresenceElement;
  }
  interface HTMLElementEventMap {
    "hikyaku:presence": CustomEvent<Presence>;
  }
}
