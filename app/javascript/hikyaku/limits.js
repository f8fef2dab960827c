// How much, and how long.

export const LIMITS = Object.freeze({
  eventLength: 16 * 1024 * 1024, // characters of one event
  idLine: 2_000, // characters of a line that are kept of an event that is longer
  ids: 10_000, // that a connection remembers, against repeats
  history: 1_000, // events that a connection keeps for readers that come later
  historyLength: 1024 * 1024, // the same in characters
  names: 100, // streams of one token, and matchers of one connection
  namesLength: 60_000, // characters of the names that a token endpoint is asked for at once
  queryLength: 7_500, // characters of a subscription's URL, which servers bound
  connections: 2, // of one token scope, while readers that cannot be placed elsewhere catch up
  unread: 1_000, // messages that a tab may leave unread
  unreadLength: 4 * 1024 * 1024, // the same in characters
});

export const SECOND = 1_000;

export const TIMES = Object.freeze({
  gather: 20, // readers that come together are one request
  answer: 30 * SECOND, // in which the hub and the token endpoint answer
  retry: SECOND, // before a connection is made again, unless the hub says otherwise
  longestRetry: 30 * SECOND,
  longestRetryAfter: 600 * SECOND,
  silence: 60 * SECOND, // without a byte: the connection is dead; hubs send a comment earlier
  longestSilence: 900 * SECOND,
  doubt: 20 * SECOND, // without a byte, and then a reason to doubt the connection
  skew: SECOND, // by which the stream and the answers to other requests may be apart
  linger: 1_500, // that a topic is carried on without readers: pages come and go
  merge: 250, // between attempts to do with one connection
  tick: 5 * SECOND,
  mark: 5 * SECOND, // between news of the cursor for tabs
  ping: 25 * SECOND,
  pong: 10 * SECOND,
  firstWord: 2 * SECOND, // of a worker; after that the tabs go on without it, and go back to it when it speaks
  dead: 600 * SECOND, // for which a worker that never spoke is not started again
  tabGone: 180 * SECOND, // browsers let hidden tabs speak once a minute

  // For hubs that do not tell when a stream has caught up, as those of other makes: see arrival-tracker.js. There is nothing but time to
  // go by, and it is a guess.
  quiet: 300, // without a byte after what was missed: caught up
  longestCatchUp: 5 * SECOND,
  drained: 20 * SECOND, // after which nothing is on its way any more
  impatience: 3 * SECOND, // the same, where readers wait for a place
});
