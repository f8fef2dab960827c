# frozen_string_literal: true

# Writes gap_events.txt. Only after a change of what readers are told: the file is what every engine is tested against.

require_relative "../../lib/hikyaku/hub"

hub_url = "https://hub.example.com/.well-known/mercure"
random = Random.new(20_261_121)
# Bytes that begin, go on, or break characters of UTF-8.
bytes = ["\x00", "a", "\x7F", "\x80", "\x8F", "\x90", "\x9F", "\xA0", "\xBF", "\xC0", "\xC1", "\xC2", "\xDF", "\xE0", "\xE1", "\xEC", "\xED", "\xEE", "\xEF", "\xF0", "\xF1", "\xF3", "\xF4", "\xF5", "\xFF"].map(&:b)

ids = ["", "urn:never", "#K7gNU3sdo-O", "quote \" backslash \\ slash /", (0..0x20).map(&:chr).join + "\x7F", "\u00E9 \u2028 \u{1F680} \uFFFD"]
ids += bytes + bytes.product(bytes).map(&:join).sample(80, random: random)
ids += 120.times.map { Array.new(3 + random.rand(6)) { bytes.sample(random: random) }.join }
ids += [1023, 1024, 1026].flat_map { |length| ["x", "\u20AC", "\u{1F680}", "\xF0\x9F".b].map { |last| "x".b * (length - last.bytesize) + last.b + "y" } }
ids += ["\xF0\x9F\x9A".b * 350, "\xFF".b * 350]

patterns = [[], %w[/news], ["*", "/books/:id", "https://example.com/{a}/\u00E9", "/\"quoted\"\\"]]
types = %w[exact urlpattern uri_template]

lines = ids.map.with_index do |id, i|
  matchers = patterns[i % 3].each_with_index.filter_map do |pattern, place|
    Hikyaku::Hub::Matcher.build(type: types[(i + place) % 3], pattern: pattern, base: hub_url)
  rescue Hikyaku::Error
    nil
  end
  event = Hikyaku::Hub::Gap.event(id: "#K7gNU3sdo-O", after: id, reason: matchers.empty? ? "unknown" : "overrun", matchers: matchers)
  named = matchers.map { |matcher| "#{matcher.type}=#{matcher.pattern.unpack1("H*")}" }
  [id.unpack1("H*"), event.unpack1("H*"), *named].join(" ")
end
File.write(File.join(__dir__, "gap_events.txt"), "# what the reader has, the event, the matchers; bytes as hexadecimal digits\n#{lines.join("\n")}\n")
