# frozen_string_literal: true

require_relative "well_behaved"
require_relative "answers_out_of_order"
require_relative "answers_without_length"
require_relative "closes_after"
require_relative "closes_kept_open"
require_relative "discards_second"
require_relative "extra_bytes"
require_relative "goes_on_after_close"
require_relative "hangs_on_second"
require_relative "head_with_body"
require_relative "http_10"
require_relative "interim_first"
require_relative "keep_alive_max"
require_relative "not_modified_with_body"
require_relative "promises_more"
require_relative "refuses_second"
require_relative "resets"
require_relative "sends_bad_chunk"
require_relative "slow_first_byte"
require_relative "stray_line_end"
require_relative "times_out_idle"
require_relative "wrong_gzip"

module Misbehaving
  # Misbehaves at random: at each request of each connection it may do so in any way. The same seed does the same, as far as the client does.
  #
  #     random = Misbehaving::Random.new(7)
  #     paths = random.paths(20)
  #     Misbehaving.run(random) { |server| client.get(*paths.map { |path| server.url(path) }) }
  #
  # Answers out of order are revealed by Content-Location, for otherwise nobody could tell them.
  class Random < WellBehaved
    WAYS = {
      answers_out_of_order: -> { AnswersOutOfOrder.new(reveals: :content_location, seconds: 0.01) },
      bad_chunk: -> { SendsBadChunk.new },
      close_delimited: -> { AnswersWithoutLength.new },
      closes_after: -> { ClosesAfter.new },
      closes_kept_open: -> { ClosesKeptOpen.new },
      discards_second: -> { DiscardsSecond.new },
      extra_bytes: -> { ExtraBytes.new },
      goes_on_after_close: -> { GoesOnAfterClose.new },
      hangs: -> { HangsOnSecond.new },
      head_with_body: -> { HeadWithBody.new },
      http_10: -> { Http10.new },
      interim_first: -> { InterimFirst.new },
      keep_alive_max: -> { KeepAliveMax.new(max: 3) },
      not_modified_with_body: -> { NotModifiedWithBody.new },
      promises_more: -> { PromisesMore.new },
      refuses: -> { RefusesSecond.new },
      resets: -> { Resets.new },
      slow: -> { SlowFirstByte.new(seconds: 0.05) },
      stray_line_end: -> { StrayLineEnd.new },
      times_out_idle: -> { TimesOutIdle.new(seconds: 0.02) },
      wrong_gzip: -> { WrongGzip.new }
    }.freeze
    # Only where the request is such a one.
    PARTICULAR = %i[head_with_body not_modified_with_body].freeze
    EXTENSIONS = %w[html css js gif png jpg txt].freeze
    private_constant :PARTICULAR, :EXTENSIONS

    # @param seed [Integer]
    # @param odds [Float] of a request being one at which it misbehaves
    # @param without [Array<Symbol>] ways that it does not take: those of WAYS
    # @param only [Array<Symbol>] ways that it takes
    def initialize(seed, odds: 0.2, without: [], only: WAYS.keys)
      @seed = seed
      @odds = odds
      @ways = WAYS.values_at(*(only - without)).map(&:call)
      @names = only - without
      @lock = Mutex.new
      @taken = []
    end

    # @return [Array<Array(Integer, Integer, Symbol)>] of each misbehaviour the connection, the request on it, and the way
    def taken = @lock.synchronize { @taken.dup }

    # @param count [Integer]
    # @return [Array<String>] different ones, of a page that may be asked for
    def paths(count)
      random = ::Random.new(@seed)
      Array.new(count) { |index| "/#{index}-#{random.rand(1_000_000)}.#{EXTENSIONS[random.rand(EXTENSIONS.size)]}" }
    end

    def serve(connection)
      random = ::Random.new(@seed * 1_000_003 + connection.number)
      while (request = connection.read)
        misbehaves = random.rand < @odds
        index = random.rand(@ways.size)
        misbehaves ? take(index, connection, request) : behave(connection, request)
      end
    end

    private

    def take(index, connection, request)
      way = @ways[index]
      return behave(connection, request) if PARTICULAR.include?(@names[index]) && !way.due?(connection, request)
      @lock.synchronize { @taken << [connection.number, connection.count, @names[index]].freeze }
      way.misbehave(connection, request)
    end
  end
end
