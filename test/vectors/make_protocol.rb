# frozen_string_literal: true

# Writes protocol/*.json from docs/protocol.md. Only after a change of the protocol: these files are what every reader and
# builder of frames is tested against. It lays the bytes out by itself, with nothing of what is tested.

require "json"

TYPES = %w[HELLO SEND SEND_BATCH SUBSCRIBE UNSUBSCRIBE CREDIT FREE NACK TOUCH PING DRAIN QUERY].each.with_index(1).to_h
  .merge(%w[ACK ERROR PUSH REPORT].each.with_index(32).to_h)
MOST = {1 => 0xFF, 2 => 0xFFFF, 4 => 0xFFFF_FFFF, 8 => 0xFFFF_FFFF_FFFF_FFFF}.freeze

def u(bytes, value) = Array.new(bytes) { |at| (value >> 8 * at) & 0xFF }.pack("C*")

def u8(value) = u(1, value)

def u16(value) = u(2, value)

def u32(value) = u(4, value)

def u64(value) = u(8, value)

def hex(bytes) = bytes.unpack1("H*")

def frame(type, rest = "".b, id: 0, flags: 0, subscription: 0, size: nil)
  u32(size || 16 + rest.bytesize) + u8(TYPES.fetch(type, type)) + u8(flags) + u16(subscription) + u64(id) + rest.b
end

def properties(pairs) = pairs.map { |name, value| u8(name.bytesize) + name.b + u16(value.bytesize) + value.b }.join

def vector(name, type, bytes, **fields) = {name: name, frame: type, **fields, hex: hex(bytes)}

def hello(name, id: 1, lowest: 1, highest: 1, features: 0, max_frame: 1_048_576, heartbeat: 0, epoch: 0, authentication: 0, identity: "", credentials: "", agent: "")
  rest = "HKB\r\n\x1A\n\x00".b + u16(lowest) + u16(highest) + u32(features) + u32(max_frame) + u32(heartbeat) + u64(epoch) + u8(authentication) + u8(0) +
    u16(identity.bytesize) + u16(credentials.bytesize) + u16(agent.bytesize) + identity.b + credentials.b + agent.b
  vector(name, "HELLO", frame("HELLO", rest, id: id), id: id, lowest: lowest, highest: highest, features: features, max_frame: max_frame,
    heartbeat: heartbeat, epoch: epoch, authentication: authentication, identity: identity, credentials: credentials, agent: agent)
end

def to_send(sequence, delay, time_to_live, priority, level, to, second, kind)
  u64(sequence) + u32(delay) + u32(time_to_live) + u8(priority) + u8(level) + u16(to.bytesize) + u16(second) + u8(kind) + u8(0) + to.b
end

def send_message(name, id: 0, sequence: 0, delay: 0, time_to_live: 0, priority: 4, level: 255, kind: 0, to: "q", pairs: {}, payload: "")
  packed = properties(pairs)
  bytes = frame("SEND", to_send(sequence, delay, time_to_live, priority, level, to, packed.bytesize, kind) + packed + payload.b, id: id)
  vector(name, "SEND", bytes, id: id, sequence: sequence, delay: delay, time_to_live: time_to_live, priority: priority, level: level,
    kind: kind, destination: to, properties: hex(packed), payload: hex(payload.b))
end

def send_batch(name, messages, id: 0, sequence: 0, delay: 0, time_to_live: 0, priority: 4, level: 255, kind: 0, to: "q")
  packed = messages.map { |pairs, payload| [properties(pairs), payload.b] }
  rest = to_send(sequence, delay, time_to_live, priority, level, to, 0, kind) + u32(packed.size) +
    packed.map { |first, second| u32(first.bytesize + second.bytesize) + u16(first.bytesize) + first + second }.join
  vector(name, "SEND_BATCH", frame("SEND_BATCH", rest, id: id), id: id, sequence: sequence, delay: delay, time_to_live: time_to_live,
    priority: priority, level: level, kind: kind, destination: to, count: packed.size, properties: packed.map { |first, _| hex(first) },
    payloads: packed.map { |_, second| hex(second) })
end

def subscribe(name, id: 0, subscription: 1, credit: 0, credit_bytes: 0, lease: 0, kind: 0, queue: "q")
  rest = u32(credit) + u32(credit_bytes) + u32(lease) + u8(kind) + u8(0) + u16(queue.bytesize) + queue.b
  vector(name, "SUBSCRIBE", frame("SUBSCRIBE", rest, id: id, subscription: subscription), id: id, subscription: subscription, credit: credit,
    credit_bytes: credit_bytes, lease: lease, kind: kind, queue: queue)
end

def nack(name, id: 0, delivery: 1, delay: 0, kind: 0, reason: "")
  rest = u64(delivery) + u32(delay) + u8(kind) + u8(0) + u16(reason.bytesize) + reason.b
  vector(name, "NACK", frame("NACK", rest, id: id), id: id, delivery: delivery, delay: delay, kind: kind, reason: reason)
end

def query(name, id: 0, what: 1, kind: 0, limit: 0, number: 0, queue: "")
  rest = u8(what) + u8(kind) + u16(queue.bytesize) + u32(limit) + u64(number) + queue.b
  vector(name, "QUERY", frame("QUERY", rest, id: id), id: id, what: what, kind: kind, limit: limit, number: number, queue: queue)
end

def free(name, id: 0, first: 0, last: 0, level: nil)
  vector(name, "FREE", frame("FREE", u64(first) + u64(last), id: id, flags: level ? level + 1 : 0), id: id, first: first, last: last, level: level ? level + 1 : 0)
end

delivery = (5 << 36) + 1

CLIENT = [
  hello("a client without a name"),
  hello("a client with everything", id: 7, lowest: 1, highest: 3, features: 0, max_frame: 65_536, heartbeat: 15_000, epoch: 1_795_000_000_001,
    authentication: 2, identity: "büro", credentials: "eyJ.token", agent: "hikyaku/1.0"),
  hello("numbers at their most", id: MOST[8], lowest: MOST[2], highest: MOST[2], features: MOST[4], max_frame: MOST[4], heartbeat: MOST[4],
    epoch: MOST[8], authentication: 255, identity: "i" * 255, credentials: "c" * 300, agent: "a" * 255),
  send_message("a message", id: 2, to: "mails", payload: "hello"),
  send_message("a message without anything", to: "q"),
  send_message("a message with everything", id: 3, sequence: 17, delay: 60_000, time_to_live: 86_400_000, priority: 9, level: 2, kind: 1,
    to: "büro", pairs: {"reply-to" => "web-1", "correlation" => "42"}, payload: "\x00\xFF\n"),
  send_message("a message at its most", id: MOST[8], sequence: MOST[8], delay: MOST[4], time_to_live: MOST[4], priority: 255, level: 255,
    kind: 255, to: "q" * 255, pairs: {"n" * 255 => "v" * 300}, payload: "p" * 300),
  send_batch("three messages", [[{}, "one"], [{"trace" => "t"}, "two"], [{}, ""]], id: 4, sequence: 18, delay: 5, time_to_live: 1000,
    priority: 0, level: 1, to: "mails"),
  send_batch("no messages", [], id: 5),
  subscribe("a subscription", id: 6, subscription: 1, credit: 200, queue: "mails"),
  subscribe("a subscription to one's own queue", id: 8, subscription: 65_535, credit: 1, credit_bytes: 1_048_576, lease: 60_000, kind: 1, queue: ""),
  vector("no more of it", "UNSUBSCRIBE", frame("UNSUBSCRIBE", id: 9, subscription: 3), id: 9, subscription: 3),
  vector("a pause", "CREDIT", frame("CREDIT", u32(0) + u32(0), id: 10, subscription: 1), id: 10, subscription: 1, credit: 0, credit_bytes: 0),
  vector("credit at its most", "CREDIT", frame("CREDIT", u32(MOST[4]) + u32(MOST[4]), subscription: 65_535), id: 0, subscription: 65_535,
    credit: MOST[4], credit_bytes: MOST[4]),
  free("one is done with", id: 11, first: delivery, last: delivery),
  free("all up to one are done with, synced", id: 12, last: delivery + 100, level: 2),
  free("a few are done with, in memory", first: delivery, last: delivery + 1, level: 0),
  free("every number there is, written", first: 0, last: MOST[8], level: 1),
  nack("back, of one's own will", id: 13, delivery: delivery),
  nack("it failed", id: 14, delivery: delivery + 1, delay: 30_000, kind: 1, reason: "Timeout: mailserver schläft"),
  nack("it is dead", delivery: delivery + 2, kind: 2, reason: "no such user"),
  vector("more time for one", "TOUCH", frame("TOUCH", u64(delivery) + u64(delivery) + u32(0) + u32(0), id: 15), id: 15, first: delivery, last: delivery, lease: 0),
  vector("more time for all", "TOUCH", frame("TOUCH", u64(0) + u64(MOST[8]) + u32(90_000) + u32(0)), id: 0, first: 0, last: MOST[8], lease: 90_000),
  vector("are you there?", "PING", frame("PING", id: 16), id: 16),
  vector("I am here", "PING", frame("PING"), id: 0),
  vector("no more deliveries", "DRAIN", frame("DRAIN"), id: 0),
  vector("this identity is not needed any more", "FORGET", frame("DRAIN", flags: 1), id: 0),
  query("which queues there are", id: 17, what: 1, limit: 10, queue: "ma"),
  query("why it waits", id: 18, what: 2, number: 12_345),
  query("whatever is dead", id: 19, what: 3, kind: 1, number: MOST[8], queue: "büro"),
  vector("it is in hand", "ACK", frame("ACK", id: delivery), id: delivery)
].freeze

def ack(name, type, id: 0, level: 0, count: 0, value: 0, last: nil, duplicate: false, refusals: [])
  rest = u8(TYPES.fetch(type)) + u8(level) + u16(refusals.size) + u32(count) + u64(value) + (last ? u64(last) : "") +
    refusals.map { |index, code, retry_after| u32(index) + u16(code) + u16(0) + u32(retry_after) }.join
  vector(name, "ACK", frame("ACK", rest, id: id, flags: (last ? 1 : 0) | (duplicate ? 2 : 0)), id: id, request: TYPES.fetch(type), level: level, count: count,
    value: value, last: last || id, duplicate: duplicate, refusals: refusals.flatten)
end

def welcome(name, id: 1, version: 1, levels: 7, level: 1, features: 0, max_frame: 1_048_576, heartbeat: 0, window_messages: 4096, window_bytes: 8_388_608, session: 1, low: 0)
  rest = u8(1) + u8(0) + u16(0) + u32(0) + u64(0) + u16(version) + u8(levels) + u8(level) + u32(features) + u32(max_frame) + u32(heartbeat) +
    u32(window_messages) + u32(window_bytes) + u64(session) + u64(low)
  vector(name, "WELCOME", frame("ACK", rest, id: id), id: id, version: version, levels: levels, level: level, features: features, max_frame: max_frame,
    heartbeat: heartbeat, window_messages: window_messages, window_bytes: window_bytes, session: session, low: low)
end

LATER = [15, 16, 17, 18, 20, 21].freeze

def error(name, code, id: 0, subscription: 0, scope: 0, retry_after: 0, delivery: 0, sentence: "")
  rest = u16(code) + u8(scope) + u8(LATER.include?(code) ? 1 : 0) + u32(retry_after) + u64(delivery) + sentence.b
  vector(name, "ERROR", frame("ERROR", rest, id: id, subscription: subscription), id: id, subscription: subscription, code: code, scope: scope,
    later: LATER.include?(code), retry_after: retry_after, delivery: delivery, sentence: sentence)
end

def push(name, id: 1, subscription: 1, message: 1, sent_at: 0, lease: 30_000, attempt: 1, failures: 0, crashes: 0, priority: 4, redelivered: false, poison_candidate: false, pairs: {}, payload: "")
  packed = properties(pairs)
  rest = u64(message) + u64(sent_at) + u32(lease) + u16(attempt) + u16(failures) + u16(crashes) + u8(priority) + u8(0) + u16(packed.bytesize) + u16(0) + packed + payload.b
  vector(name, "PUSH", frame("PUSH", rest, id: id, subscription: subscription, flags: (redelivered ? 1 : 0) | (poison_candidate ? 2 : 0)), id: id, subscription: subscription,
    message: message, sent_at: sent_at, lease: lease, attempt: attempt, failures: failures, crashes: crashes, priority: priority, redelivered: redelivered,
    poison_candidate: poison_candidate, properties: hex(packed), payload: hex(payload.b))
end

BROKER = [
  welcome("come in", id: 1, levels: 1, level: 0, session: 3),
  welcome("come in, with everything", id: 7, heartbeat: 15_000, level: 2, max_frame: 65_536, window_messages: 100, window_bytes: 1_000_000,
    session: 134_217_727, low: 4711),
  ack("a message was taken", "SEND", id: 2, level: 1, value: 1001),
  ack("a thousand messages were taken", "SEND", id: 2, level: 2, value: 1001, last: 1001),
  ack("a message was taken before", "SEND", id: 3, level: 1, duplicate: true),
  ack("messages were taken", "SEND_BATCH", id: 4, level: 1, count: 3, value: 2002),
  ack("messages were taken, others not", "SEND_BATCH", id: 4, level: 0, count: 1, value: 2002, refusals: [[0, 7, 0], [2, 15, 250]]),
  ack("messages were taken before", "SEND_BATCH", id: 5, level: 2, count: 2, duplicate: true),
  ack("subscribed", "SUBSCRIBE", id: 6),
  ack("not subscribed any more", "UNSUBSCRIBE", id: 9),
  ack("credited", "CREDIT", id: 10),
  ack("freed", "FREE", id: 12, level: 2, count: 100),
  ack("came back", "NACK", id: 13, level: 1),
  ack("more time", "TOUCH", id: 15, count: 2, value: 30_000),
  vector("I am here", "RECEIPT", frame("ACK", id: 16), id: 16),
  vector("are you there?", "PING", frame("PING"), id: 0),
  vector("come back in a second", "DRAIN", frame("DRAIN", u32(1000) + u32(0)), id: 0, retry_after: 1000),
  error("stale", 12, id: 11, delivery: delivery, sentence: "the lease of this delivery has ended"),
  error("full", 15, id: 2, retry_after: 250, sentence: "the queue mails is full: it holds 1,000 messages"),
  error("fenced", 6, scope: 2, sentence: "büro has connected again"),
  error("without a sentence", 8, id: MOST[8], subscription: 65_535, scope: 1, retry_after: MOST[4], delivery: MOST[8]),
  push("a message", id: delivery, subscription: 1, message: 1001, sent_at: 1_795_000_000_000, payload: "hello"),
  push("a poison candidate", id: delivery + 1, subscription: 65_535, message: 1002, sent_at: 1_795_000_000_001, lease: 60_000, attempt: 3, failures: 1,
    crashes: 1, priority: 9, redelivered: true, poison_candidate: true, pairs: {"reply-to" => "web-1"}, payload: "\x00\xFF"),
  push("a message at its most", id: MOST[8], message: MOST[8], sent_at: MOST[8], lease: MOST[4], attempt: MOST[2], failures: MOST[2], crashes: MOST[2],
    priority: 255, pairs: {"n" * 255 => "v" * 300}, payload: "p" * 300),
  vector("a report", "REPORT", frame("REPORT", "{\"count\":3}", id: 17), id: 17, document: "{\"count\":3}"),
  vector("a report of nothing", "REPORT", frame("REPORT"), id: 0, document: "")
].freeze

def wrong(name, from, code, bytes, max_frame: 1_048_576, id: 0) = {name: name, from: from, code: code, id: id, max_frame: max_frame, hex: hex(bytes)}

def cut(vectors, from)
  vectors.uniq { |vector| vector[:frame] }.reject { |vector| vector[:frame] == "REPORT" }.flat_map do |vector|
    bytes = [vector[:hex]].pack("H*")
    id = vector[:id]
    shorter = bytes.bytesize - 1
    # Of some frames the last field goes on to the end, whatever its length.
    open = %w[SEND PUSH ERROR].include?(vector[:frame])
    fixed = {"SEND" => 40, "PUSH" => 48, "ERROR" => 32}[vector[:frame]]
    size = open ? fixed - 1 : shorter
    found = []
    found << wrong("#{vector[:frame]} that is too short", from, 1, u32(size) + bytes[4, size - 4], id: id) if size >= 16
    found << wrong("#{vector[:frame]} that is too long", from, 1, u32(bytes.bytesize + 1) + bytes[4..] + "\0".b, id: id) unless open
    flags = %w[FREE].include?(vector[:frame]) ? 4 : 128
    found << wrong("#{vector[:frame]} with flags that are not known", from, 1, bytes.dup.tap { |copy| copy.setbyte(5, flags) }, id: id)
    unless %w[SUBSCRIBE UNSUBSCRIBE CREDIT PUSH ERROR].include?(vector[:frame])
      found << wrong("#{vector[:frame]} with a subscription", from, 1, bytes.dup.tap { |copy| copy.setbyte(7, 1) }, id: id)
    end
    found
  end
end

def with(vectors, frame, at, *values)
  bytes = [vectors.find { |vector| vector[:frame] == frame }[:hex]].pack("H*")
  values.each.with_index(at) { |value, place| bytes.setbyte(place, value) }
  bytes
end

def id_of(vectors, frame) = vectors.find { |vector| vector[:frame] == frame }[:id]

zeros = {"HELLO" => [49], "SEND" => [39], "SEND_BATCH" => [36, 39], "SUBSCRIBE" => [29], "NACK" => [29], "TOUCH" => [36, 39]}
broken = zeros.flat_map do |type, places|
  places.map { |at| wrong("#{type} with something at #{at}, where 0 is to be", "client", 1, with(CLIENT, type, at, 1), id: id_of(CLIENT, type)) }
end
broken += {"PUSH" => [43, 46], "DRAIN" => [20]}.flat_map do |type, places|
  places.map { |at| wrong("#{type} with something at #{at}, where 0 is to be", "broker", 1, with(BROKER, type, at, 1), id: id_of(BROKER, type)) }
end

MALFORMED = [
  wrong("a length of 0", "client", 1, frame("PING", size: 0)),
  wrong("a length of 15", "client", 1, frame("PING", id: 5, size: 15)),
  wrong("a length beyond what was agreed on", "client", 7, frame("SEND", id: 5, size: 4097), max_frame: 4096, id: 5),
  wrong("a length of 4 GiB", "client", 7, frame("SEND", id: 5, size: MOST[4]), id: 5),
  wrong("a type that there is not", "client", 1, frame(0, id: 5), id: 5),
  wrong("another type that there is not", "client", 1, frame(13, id: 5), id: 5),
  wrong("a type that there is not, of any length", "client", 1, frame(255, id: 5, size: MOST[4]), id: 5),
  wrong("a request of HTTP", "client", 1, "GET / HTTP/1.1\r\nhost: example.com\r\n\r\n", id: "TP/1.1\r\n".unpack1("Q<")),
  wrong("what the broker says", "client", 2, frame("PUSH", u64(0) * 4, id: 5), id: 5),
  wrong("an ERROR of a client", "client", 2, frame("ERROR", u64(0) * 2, id: 5), id: 5),
  wrong("what a client says", "broker", 2, frame("SEND", u64(0) * 3, id: 5), id: 5),
  wrong("HELLO of something else", "client", 1, with(CLIENT, "HELLO", 16, 0x58), id: 1),
  wrong("HELLO with credentials of 16,385 bytes", "client", 1,
    frame("HELLO", [hello("")[:hex]].pack("H*")[16, 36] + u16(16_385) + u16(0) + "c" * 16_385, id: 1), id: 1),
  wrong("HELLO with an identity of 256 bytes", "client", 1, frame("HELLO", [hello("")[:hex]].pack("H*")[16, 34] + u16(256) + u32(0) + "i" * 256, id: 1), id: 1),
  wrong("HELLO with an agent of 256 bytes", "client", 1, frame("HELLO", [hello("")[:hex]].pack("H*")[16, 38] + u16(256) + "a" * 256, id: 1), id: 1),
  wrong("SEND whose destination goes beyond its end", "client", 1, with(CLIENT, "SEND", 34, 11), id: 2),
  wrong("SEND whose properties go beyond its end", "client", 1, with(CLIENT, "SEND", 36, 6), id: 2),
  wrong("SEND_BATCH whose destination goes beyond its end", "client", 1, with(CLIENT, "SEND_BATCH", 34, 255, 255), id: 4),
  wrong("SEND_BATCH with more messages than it says", "client", 1, with(CLIENT, "SEND_BATCH", 45, 2), id: 4),
  wrong("SEND_BATCH with fewer messages than it says", "client", 1, with(CLIENT, "SEND_BATCH", 45, 4), id: 4),
  wrong("SEND_BATCH that says 4,294,967,295 messages", "client", 1, with(CLIENT, "SEND_BATCH", 45, 255, 255, 255, 255), id: 4),
  wrong("SEND_BATCH with a message that goes beyond its end", "client", 1, with(CLIENT, "SEND_BATCH", 49, 255, 255, 255, 255), id: 4),
  wrong("SEND_BATCH with properties that are longer than their message", "client", 1, with(CLIENT, "SEND_BATCH", 53, 4), id: 4),
  wrong("an ACK of a client with more than 16 bytes", "client", 1, frame("ACK", u64(0) * 2, id: 5), id: 5),
  wrong("FREE with a level that there is not", "client", 1, frame("FREE", u64(0) * 2, id: 5, flags: 4), id: 5),
  wrong("an ACK of 24 bytes", "broker", 1, frame("ACK", u64(0), id: 5), id: 5),
  wrong("an ACK of no request", "broker", 1, frame("ACK", u64(0) * 2, id: 5), id: 5),
  wrong("an ACK to QUERY", "broker", 1, frame("ACK", u64(12) + u64(0), id: 5), id: 5),
  wrong("a range without its end", "broker", 1, frame("ACK", u64(2) + u64(0), id: 5, flags: 1), id: 5),
  wrong("a range of FREE", "broker", 1, frame("ACK", u64(7) + u64(0) * 2, id: 5, flags: 1), id: 5),
  wrong("a DUPLICATE of FREE", "broker", 1, frame("ACK", u64(7) + u64(0), id: 5, flags: 2), id: 5),
  wrong("refusals of SEND", "broker", 1, frame("ACK", u8(2) + u8(0) + u16(1) + u32(0) + u64(0) + u64(0) + u32(0), id: 5), id: 5),
  wrong("refusals that are not there", "broker", 1, frame("ACK", u8(3) + u8(0) + u16(9) + u32(0) + u64(0), id: 5), id: 5),
  wrong("an ACK to PING with a flag", "broker", 1, frame("ACK", id: 5, flags: 1), id: 5),
  wrong("PUSH whose properties go beyond its end", "broker", 1, with(BROKER, "PUSH", 44, 6), id: delivery),
  *broken, *cut(CLIENT, "client"), *cut(BROKER, "broker")
].uniq { |vector| vector[:hex] + vector[:from] }.freeze

{"client" => CLIENT, "broker" => BROKER, "malformed" => MALFORMED}.each do |name, vectors|
  text = "[\n#{vectors.map { |vector| JSON.generate(vector) }.join(",\n")}\n]\n"
  File.write(File.expand_path("protocol/#{name}.json", __dir__), text)
end
