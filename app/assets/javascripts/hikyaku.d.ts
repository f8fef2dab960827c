// Types of hikyaku.js, which bin/javascript joins from the modules of app/javascript/hikyaku.

/** One event, as it came. */
export interface HikyakuEvent {
  /** "" where the hub gave none. */
  id: string;
  type: string;
  data: string;
  /** Whether the event has an id of its own, and not that of one before. */
  identified: boolean;
}

/**
 * - `connected`: the stream is open; what was missed may still be coming
 * - `caught-up`: what was missed has come: the hub has said so, or, one of another make, nothing for a moment
 * - `reconnecting`: the connection is lost, and will be made again by itself
 * - `gap`: something may be missing that the hub does not have any more; the page should be loaded anew
 * - `refused`: nothing will come
 */
export type State = "connected" | "caught-up" | "reconnecting" | "gap" | "refused";

export interface StateDetail {
  /** Of `reconnecting`: a sentence. Of `gap`: "unknown", "overrun" or "oversize". Of `refused`: "expired", "invalid", "forbidden", "unauthorized", "not_found" or "rejected". */
  reason?: string;
  /** The HTTP status that is the reason. */
  status?: number | null;
  /** Of `reconnecting`: milliseconds until the next attempt. */
  pause?: number;
  /** Of `gap`: the last event before it. */
  lastEventId?: string;
}

export interface Handlers {
  onmessage?(event: HikyakuEvent): void;
  onstate?(state: State, detail: StateDetail): void;
  /** The place from which the stream can be taken up has changed: by an event, or because time went by. */
  oncursor?(cursor: string): void;
}

/** A stream that the page wants, until it is closed. */
export class Stream {
  private constructor();
  readonly state: State | null;
  readonly closed: boolean;
  /** From here the stream can be taken up again. */
  readonly lastEventId: string | null;
  close(): void;
}

export interface StreamOptions extends Handlers {
  /** The id of the event at which the page was rendered: what came after it is delivered first. */
  cursor?: string | null;
}

/** The streams whose signed names one token endpoint exchanges for a token. */
export interface Source {
  /** The absolute URL of the token endpoint. */
  readonly endpoint: string;
  stream(signedName: string, options?: StreamOptions): Stream;
}

export interface SubscribeOptions extends Handlers {
  /** Topics. */
  match?: string | string[];
  /** URL patterns. */
  matchUrlPattern?: string | string[];
  /** An access token; a function is asked for another one before it expires. Without one: the hub's cookie, or none. */
  token?: string | null | (() => string | Promise<string>);
  /** The event after which to begin. */
  lastEventId?: string | null;
  /** Send cookies to a hub of another origin. */
  withCredentials?: boolean;
}

export interface Configuration {
  /** The address of hikyaku.js, where it is part of a bundle and no `<meta name="hikyaku-worker">` says it; false for no shared worker. */
  worker?: string | URL | false;
}

export const Hikyaku: {
  /** @param options.endpoint The token endpoint, which exchanges signed names for a token; "/hikyaku/streams" by default. */
  connect(options?: {endpoint?: string | URL}): Source;
  /**
   * Topics of a Mercure hub.
   * @throws TypeError neither match nor matchUrlPattern is given
   */
  subscribe(hub: string | URL, options: SubscribeOptions): Stream;
  /** To be called before the first stream, or in the turn in which the file was imported. */
  configure(options: Configuration): void;
  /** Who holds the connection: a worker for all tabs, one of the tabs for all, or each page for itself. */
  readonly sharing: "worker" | "tabs" | "page" | null;
};

/** `<hikyaku-stream-source signed-stream-name cursor src>` */
export interface HikyakuStreamSourceElement extends HTMLElement {
  readonly state: State | null;
  addEventListener<K extends keyof HikyakuStreamSourceElementEventMap>(
    type: K,
    listener: (this: HikyakuStreamSourceElement, event: HikyakuStreamSourceElementEventMap[K]) => unknown,
    options?: boolean | AddEventListenerOptions,
  ): void;
  addEventListener(type: string, listener: EventListenerOrEventListenerObject, options?: boolean | AddEventListenerOptions): void;
  removeEventListener<K extends keyof HikyakuStreamSourceElementEventMap>(
    type: K,
    listener: (this: HikyakuStreamSourceElement, event: HikyakuStreamSourceElementEventMap[K]) => unknown,
    options?: boolean | EventListenerOptions,
  ): void;
  removeEventListener(type: string, listener: EventListenerOrEventListenerObject, options?: boolean | EventListenerOptions): void;
}

/** Dispatched by the element, bubbling and cancelable. */
export interface HikyakuElementEvents {
  "hikyaku:connected": CustomEvent<StateDetail>;
  "hikyaku:caught-up": CustomEvent<StateDetail>;
  "hikyaku:reconnecting": CustomEvent<StateDetail>;
  /** preventDefault(): the page is not refreshed. */
  "hikyaku:gap": CustomEvent<StateDetail>;
  /** preventDefault(): the page is not refreshed, where the name has expired. */
  "hikyaku:refused": CustomEvent<StateDetail>;
  /** preventDefault(): the event is not rendered. */
  "hikyaku:event": CustomEvent<Pick<HikyakuEvent, "id" | "type" | "data">>;
}

/** Of `hikyaku:refresh-waits`, which the document dispatches, cancelable, where a refresh waits for what has been entered into forms. preventDefault(): the page is not refreshed. */
export interface RefreshWaitsDetail {
  /** The forms that are not as the page came with them. */
  forms: HTMLFormElement[];
  /** Controls without a form, and elements with contenteditable, that are not as the page came with them. */
  controls: Element[];
  /** Refreshes the page without waiting for them. */
  refresh(): void;
}

export interface HikyakuStreamSourceElementEventMap extends HTMLElementEventMap {
  /** What comes, where Turbo does not render it. Does not bubble. */
  message: MessageEvent<string>;
}

declare global {
  interface HTMLElementTagNameMap {
    "hikyaku-stream-source": HikyakuStreamSourceElement;
  }
  interface HTMLElementEventMap extends HikyakuElementEvents {}
  interface DocumentEventMap extends HikyakuElementEvents {
    "hikyaku:refresh-waits": CustomEvent<RefreshWaitsDetail>;
  }
  interface WindowEventMap extends HikyakuElementEvents {}
}

// ---- the parts, for whoever needs one of them alone, and for tests

export interface ParserHandlers {
  /** `matchers`: those that selected the event, where the hub names them: parameters of a subscribe, with their values. */
  onevent?(event: HikyakuEvent & {matchers?: ["match" | "match_urlpattern", string][]}): void;
  /** An id without data. */
  onmark?(id: string): void;
  oncomment?(text: string): void;
  onretry?(milliseconds: number): void;
  /** An event was larger than it may be, and is left out. */
  onoversize?(id: string): void;
}

/** Parses an event stream (HTML standard, "Server-sent events"). */
export class EventParser {
  constructor(handlers: ParserHandlers, options?: {limit?: number});
  push(bytes: Uint8Array): void;
}

export function pauseAfter(failures: number, options?: {retry?: number | null; retryAfter?: number; random?: () => number}): number;

/** How much of what there may be. */
export const LIMITS: Readonly<{
  eventLength: number;
  idLine: number;
  ids: number;
  history: number;
  historyLength: number;
  names: number;
  namesLength: number;
  queryLength: number;
  connections: number;
  unread: number;
  unreadLength: number;
}>;

/** The network, the clock and the console. */
export interface Environment {
  fetch(url: string, init?: RequestInit): Promise<Response>;
  now(): number;
  random(): number;
  setTimeout(action: () => void, milliseconds: number): unknown;
  clearTimeout(timer: unknown): void;
  warn(text: string): void;
  /** The address from which others are relative. */
  base?: string;
}

/** The source of a reader: the streams of a token endpoint, or topics of a hub. */
export type Want =
  | {endpoint: string}
  | {hub: string; matchers: ["match" | "match_urlpattern", string][]; asks: boolean; credentials: RequestCredentials; rights: string | null};

/** A message of a tab to the coordinator. */
export type TabMessage =
  | {type: "hello" | "ping" | "bye"}
  | {type: "join"; readers: {id: number; want: Want; name: string | null; cursor: string | null; token: string | null}[]}
  | {type: "leave"; ids: number[]}
  | {type: "read"; count: number; length: number}
  | {type: "check"; reason: string}
  | {type: "token"; id: number; token: string | null};

/** A message of the coordinator to a tab. `reset`: the coordinator does not know the tab, which must join again. */
export type CoordinatorMessage =
  | {type: "welcome" | "pong" | "reset"}
  | {type: "event"; ids: number[]; event: HikyakuEvent}
  | {type: "state"; ids: number[]; state: State; detail: StateDetail}
  | {type: "cursor"; ids: number[]; cursor: string}
  | {type: "ask"; id: number};

/** Connects the readers of all tabs to the hub. It runs in the shared worker, or in one of the tabs. */
export class Coordinator {
  constructor(environment?: Environment);
  /** The number of open or connecting streams. */
  readonly connections: number;
  /** Takes a message of a tab; `post` sends messages to that tab, now and later. */
  receive(tab: string, message: TabMessage, post: (message: CoordinatorMessage) => void): void;
  close(): void;
}
