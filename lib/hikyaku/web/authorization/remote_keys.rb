# frozen_string_literal: true

require_relative "../../support/clock"
require_relative "jwk_set"
require_relative "key_fetch"

module Hikyaku
  class Web
    class Authorization
      # The keys of a JWK Set at a URL: fetched when first asked for, kept, and fetched again
      #
      # - in the background, when they are older than the server's max-age (60 seconds to a day; 10 minutes unless it
      #   says so). Until the new set is there, and when it cannot be had, the last good one serves.
      # - at once, when a token names a key that the set lacks (the issuer has rotated): three times in a row, a second
      #   apart, then every 30 seconds, however many such tokens come.
      #
      # A fetch runs on a thread of its own; who needs its result waits for a few seconds at most. Thread-safe.
      class RemoteKeys
        include Support::Clock

        FRESH_SECONDS = 600
        MIN_FRESH_SECONDS = 60
        MAX_FRESH_SECONDS = 86_400
        # Between two attempts when one has failed; and in which another look for an unknown key is earned.
        REFRESH_SECONDS = 30
        # Looks for unknown keys that can be saved up, and the seconds between two of them.
        LOOKS = 3
        LOOK_SECONDS = 1
        # Between two attempts while there is no key at all.
        FIRST_SECONDS = 3
        WAIT_SECONDS = 5

        def initialize(setting:, uri:, configured:, fetch:, logger: nil, on_change: -> {})
          @setting = setting
          @uri = uri
          @configured = configured
          @fetch = fetch
          @logger = logger
          @on_change = on_change
          @mutex = Mutex.new
          @finished = ConditionVariable.new
          @attempted_at = -Float::INFINITY
          @looked_at = -Float::INFINITY
          @earned_at = -Float::INFINITY
          @looks = LOOKS
          @stale_at = -Float::INFINITY
        end

        def keys(now)
          return current(now) if @keys
          @mutex.synchronize do
            start(now) if due?(now, FIRST_SECONDS)
            wait
          end
          @keys
        end

        # The keys after another look at the URL, if there were not too many lately.
        def keys_after_refresh(now)
          @mutex.synchronize do
            start(now) if look?(now)
            wait
          end
          @keys
        end

        # Starts a fetch in the background when the set has become stale. Costs next to nothing otherwise.
        def refresh_if_stale(now)
          return if fresh?(now) || @keys.nil?
          @mutex.synchronize { start(now) if !fresh?(now) && due?(now, REFRESH_SECONDS) }
        end

        # Starts a fetch in the background, whatever was fetched lately.
        def reload(now)
          @mutex.synchronize { start(now) unless @thread&.alive? }
        end

        def held = @keys

        def refreshable? = true

        def inspect = "#<#{self.class} #{@uri.hostname}, #{@keys ? "#{@keys.size} keys" : "not fetched"}>"

        private

        def current(now)
          refresh_if_stale(now)
          @keys
        end

        # A clock that was set back must not stop refreshes.
        def fresh?(now) = now < @stale_at && now >= @attempted_at

        def due?(now, seconds)
          return false if @thread&.alive?
          now - @attempted_at >= seconds || now < @attempted_at
        end

        # Whether another look for an unknown key is allowed; then it is taken.
        def look?(now)
          return false if @thread&.alive?
          @looks = [@looks + (now - @earned_at).abs / REFRESH_SECONDS, LOOKS].min
          @earned_at = now
          return false if @looks < 1 || (now - @looked_at).between?(0, LOOK_SECONDS)
          @looks -= 1
          @looked_at = now
          true
        end

        def start(now)
          @attempted_at = now
          @thread = Thread.new { run(now) }
          @thread.name = "hikyaku-jwks"
          @thread.report_on_exception = false
        end

        def wait
          deadline = now + WAIT_SECONDS
          while @thread&.alive? && (left = deadline - now) > 0
            @finished.wait(@mutex, left)
          end
        end

        def run(now)
          fetched = @fetch.call(@uri)
          set = JwkSet.new(fetched.body, configured: @configured, secrets: false)
          raise KeyFetch::Failed, "its set has no usable key#{reasons(set)}" if set.keys.empty?
          install(set.keys, now + seconds_fresh(fetched.max_age))
        rescue KeyFetch::Failed, JwkSet::Malformed => error
          failed(error.message)
        rescue => error
          failed(error.class.name)
        ensure
          @mutex.synchronize do
            @thread = nil
            @finished.broadcast
          end
        end

        def install(keys, stale_at)
          changed = @keys && @keys != keys
          @mutex.synchronize do
            @keys = keys
            @stale_at = stale_at
          end
          @on_change.call if changed
        end

        def failed(reason)
          @logger&.warn("#{@setting}: the key set at #{@uri.hostname} cannot be used: #{reason}" \
            "#{"; the last good one still serves" if @keys}")
        end

        def seconds_fresh(max_age) = (max_age || FRESH_SECONDS).clamp(MIN_FRESH_SECONDS, MAX_FRESH_SECONDS)

        def reasons(set) = set.skipped.empty? ? "" : " (#{set.skipped.first(3).join("; ")})"

        private_constant :FRESH_SECONDS, :MIN_FRESH_SECONDS, :MAX_FRESH_SECONDS, :REFRESH_SECONDS, :LOOKS, :LOOK_SECONDS,
          :FIRST_SECONDS, :WAIT_SECONDS
      end
    end
  end
end
