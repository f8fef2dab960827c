# frozen_string_literal: true

require "zlib"
require_relative "misbehaving/server"
require_relative "misbehaving/well_behaved"
require_relative "misbehaving/answers_out_of_order"
require_relative "misbehaving/answers_without_length"
require_relative "misbehaving/as_told"
require_relative "misbehaving/closes_after"
require_relative "misbehaving/closes_kept_open"
require_relative "misbehaving/discards_second"
require_relative "misbehaving/extra_bytes"
require_relative "misbehaving/goes_on_after_close"
require_relative "misbehaving/hangs_on_second"
require_relative "misbehaving/head_with_body"
require_relative "misbehaving/http_10"
require_relative "misbehaving/interim_first"
require_relative "misbehaving/keep_alive_max"
require_relative "misbehaving/not_modified_with_body"
require_relative "misbehaving/promises_more"
require_relative "misbehaving/random"
require_relative "misbehaving/refuses_second"
require_relative "misbehaving/resets"
require_relative "misbehaving/sends_bad_chunk"
require_relative "misbehaving/slow_first_byte"
require_relative "misbehaving/stray_line_end"
require_relative "misbehaving/times_out_idle"
require_relative "misbehaving/wrong_gzip"

# Small real servers on the loopback that misbehave, each in its own way.
#
#     Misbehaving.run(:closes_after, n: 3) do |server|
#       server.url("/a")   # => "http://127.0.0.1:40123/a"
#       server.log         # every request as it was received: [number of the connection, method, target, headers]
#     end
#
# A GET is answered with Misbehaving.body_of(path), which names the path, so that an answer that went to the wrong one is seen.
# Ways of misbehaving combine: `Misbehaving::Random.new(seed)` chooses one per connection and request.
module Misbehaving
  WAYS = {
    well_behaved: WellBehaved,
    answers_out_of_order: AnswersOutOfOrder,
    bad_chunk: SendsBadChunk,
    close_delimited: AnswersWithoutLength,
    closes_after: ClosesAfter,
    closes_kept_open: ClosesKeptOpen,
    discards_second: DiscardsSecond,
    extra_bytes: ExtraBytes,
    goes_on_after_close: GoesOnAfterClose,
    hangs_on_second: HangsOnSecond,
    head_with_body: HeadWithBody,
    http_10: Http10,
    interim_first: InterimFirst,
    keep_alive_max: KeepAliveMax,
    not_modified_with_body: NotModifiedWithBody,
    promises_more: PromisesMore,
    refuses_second: RefusesSecond,
    resets: Resets,
    slow_first_byte: SlowFirstByte,
    stray_line_end: StrayLineEnd,
    times_out_idle: TimesOutIdle,
    wrong_gzip: WrongGzip
  }.freeze

  class << self
    # @param way [Symbol, WellBehaved] one of WAYS, or an object that is like them
    # @param options of that way
    # @yield [Server]
    # @return what the block returns
    def run(way, **options)
      server = Server.new(way.is_a?(Symbol) ? WAYS.fetch(way).new(**options) : way)
      yield server
    ensure
      server&.close
    end

    # @param path [String] with its query
    # @return [String] what a GET of it is answered with: it names the path, and differs in length from others
    def body_of(path) = "This is #{path}.\n" * (1 + Zlib.crc32(path) % 40)

    # @param path [String]
    # @return [String] with its quotes
    def etag_of(path) = "\"#{Zlib.crc32(path).to_s(16)}\""

    # @param path [String]
    # @return [String] by its extension
    def type_of(path) = TYPES.fetch(path[/\.(\w+)(?:\?|\z)/, 1], "text/plain")
  end

  TYPES = {"html" => "text/html", "css" => "text/css", "js" => "text/javascript", "gif" => "image/gif", "png" => "image/png", "jpg" => "image/jpeg"}.freeze
end
