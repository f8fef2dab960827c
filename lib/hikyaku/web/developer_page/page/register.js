// The page's own register of what it published: it tells how long an event took, and what its topics are (an event
// itself says neither). Both ends are read from one clock. The event may arrive before the POST is answered with its
// id, so arrivals wait here too.

const LIMIT = 1000;

export class Register {
  #sent = new Map();
  #arrived = new Map();

  // topics → a publish that is under way
  begin(topics) {
    return {topics, at: performance.now()};
  }

  // The hub answered with the id.
  settle(publish, id) {
    const arrival = this.#arrived.get(id);
    if (arrival && arrival.at >= publish.at) {
      this.#arrived.delete(id);
      arrival.tell({topics: publish.topics, latency: arrival.at - publish.at});
      publish = {topics: publish.topics};
    }
    remember(this.#sent, id, publish);
  }

  // An event arrived; tell({topics, latency}) is called now, later or never. Latency is told for the first arrival only.
  arrive(id, at, tell) {
    const publish = this.#sent.get(id);
    if (!publish) return remember(this.#arrived, id, {at, tell});
    tell({topics: publish.topics, latency: publish.at === undefined ? undefined : at - publish.at});
    delete publish.at;
  }
}

function remember(map, key, value) {
  map.delete(key);
  map.set(key, value);
  if (map.size > LIMIT) map.delete(map.keys().next().value);
}
