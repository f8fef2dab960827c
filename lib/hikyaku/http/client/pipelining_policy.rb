# frozen_string_literal: true

require_relative "pipeline"
require_relative "stall_detector"

module Hikyaku
  module HTTP
    class Client
      # Whether requests to one origin may be pipelined, and why.
      #
      #     unknown ── an answer that speaks for it ──► eligible ── a few together, two answered ──► pipe
      #        ▲                                           │                                             │
      #        │                                           └── the second is not ──┐                     │
      #        └──────────── the score has decayed ───────── serial ◄──────────────┴── below zero ◄──────┘
      #                                                        ▲
      #                                                        └── for a day: HTTP/1.0, suspects, answers that are not whose they seem
      #
      # The score goes up by one with each batch that is answered as it should, down by what went wrong, and to half in an hour.
      class PipeliningPolicy
        # What each mishap costs.
        PENALTIES = {
          discarded: 20, # it was asked two things in one write and answered one
          stalled: 20,   # the answer to the first came, that to the next did not
          balked: 20,    # it refused a request that came behind another
          slow: 1,       # nothing came for long, and others waited behind it
          closed: 5,     # in the middle of a pipeline, and said nothing of it
          reset: 5
        }.freeze
        BEST = 20
        PROBED = 4
        HALF_LIFE = 3_600.0 # seconds
        BAN = 86_400.0
        WORDS = {
          discarded: "it did not answer the second of two requests that came in one segment",
          stalled: "it answered one request and then not the next",
          balked: "it refused a request that came behind another",
          slow: "an answer was long in coming while others waited behind it",
          closed: "it closed a connection on which requests were unanswered",
          reset: "it broke off a connection on which requests were unanswered",
          corrupt: "an answer could not be read",
          doubtful: "an answer did not seem to belong to its request",
          old: "it, or a proxy before it, speaks HTTP/1.0",
          bound: "it authenticates connections, not requests",
          closes: "it closes the connection after an answer",
          asks_who: "it wants to know who asks"
        }.freeze
        ASKS_WHO = [401, 407].freeze
        MOST_CHARGED = 64 # mishaps of a kind that may be taken back
        private_constant :MOST_CHARGED, :ASKS_WHO, :PENALTIES, :BEST, :PROBED, :HALF_LIFE, :BAN, :WORDS

        attr_reader :limit

        def initialize(record = nil, now:)
          @state = :unknown
          @score = 0.0
          @since = @scored_at = now
          @why = nil
          @limit = RequestLimit.new
          @charged = Hash.new { |all, what| all[what] = [] }
          recall(record) if record
        end

        def most_per_connection = @limit.most

        def state(now)
          reconsider(now)
          @state
        end

        def pipe?(now) = state(now) == :pipe

        # An answer came, on a connection where nothing else was asked.
        def met(response, now)
          ban = objection(response)
          return ban!(ban, now) if ban
          @limit.met(response)
          return unless @state == :unknown
          @why = obstacle(response)
          @state = :eligible unless @why
        end

        # Two requests in one write were both answered, in turn.
        def probed(now)
          return unless state(now) == :eligible
          @score = PROBED
          @scored_at = now
          move(:pipe, nil, now)
        end

        # All that was under way was answered.
        def succeeded(now)
          decay(now)
          @score = [@score + 1, BEST].min
        end

        def failed(what, now)
          return if @state == :serial
          decay(now)
          @score -= PENALTIES.fetch(what)
          charge(what)
          move(:serial, what, now) if @score.negative?
        end

        # What looked like a mishap was none: what is left of its cost is given back, if it cost anything.
        def forgive(what, now)
          return unless @score.finite?
          @limit.forgive
          cost = @charged[what].pop or return
          @score = [@score + cost, BEST].min
          move((@score >= PROBED) ? :pipe : :eligible, nil, now) if @state == :serial && @why == what
        end

        # No pipelining for a day.
        def ban!(what, now)
          @score = -Float::INFINITY
          @charged.clear
          move(:serial, what, now)
        end

        # The server closed after so many answers, without being in trouble.
        def closed_after(count, told: true) = @limit.closed_after(count, told: told)

        def explanation(now)
          case state(now)
          when :pipe then "is pipelined: it answered two requests of one segment, and nothing has gone wrong that counts (score #{@score.round(1)})"
          when :eligible then "is not pipelined yet: it answers as HTTP/1.1 and keeps connections open; the next requests will be sent together"
          when :serial then "is not pipelined: #{WORDS.fetch(@why) { "its server calls itself #{@why}, and such are known to fail at it" }}; #{again(now)}"
          else @why ? "is not pipelined: #{WORDS.fetch(@why)}; each answer may tell otherwise" : "is not known yet: the first answer will tell"
          end
        end

        def record
          {"state" => @state.to_s, "score" => @score.finite? ? @score.round(2) : nil, "why" => @why&.to_s, "since" => @since.round, "scored_at" => @scored_at.round,
           **@limit.record}.compact
        end

        private

        def recall(record)
          state = record["state"].to_s.to_sym
          return unless %i[eligible pipe serial].include?(state)
          @state = state
          @why = record["why"]&.to_s&.to_sym
          @score = score_of(record, state)
          @since = [Float(record["since"]), @since].min
          @scored_at = [Float(record["scored_at"]), @scored_at].min
          @limit = RequestLimit.new(record)
        end

        def charge(what)
          @charged[what] << PENALTIES.fetch(what).to_f
          @charged[what].shift if @charged[what].size > MOST_CHARGED
        end

        def score_of(record, state)
          return Float(record["score"]).clamp(-100.0, BEST) if record["score"]
          (state == :serial) ? -Float::INFINITY : 0.0
        end

        # RFC 9112, section 9.3: what speaks against keeping more than one request under way.
        def objection(response)
          return :old if response.minor == 0 || KnownOffenders.old_proxy?(response)
          return :bound if response.values("www-authenticate").any? { |value| value.match?(/\A\s*(?:ntlm|negotiate)\b/i) }
          KnownOffenders.name(response)
        end

        # What keeps an answer from speaking for it, and may be otherwise with the next.
        def obstacle(response)
          return :closes unless response.keep_alive?
          :asks_who if ASKS_WHO.include?(response.status)
        end

        def move(state, why, now)
          @state = state
          @why = why
          @since = now
        end

        # A server, or what stands before it, may be another by now.
        def reconsider(now)
          return unless @state == :serial
          decay(now)
          over = @score.finite? ? @score > -1 : now - @since >= BAN
          return unless over
          @score = 0.0
          @charged.clear
          move(:unknown, nil, now)
        end

        def decay(now)
          return unless @score.finite?
          if now > @scored_at
            left = 0.5**((now - @scored_at) / HALF_LIFE)
            @score *= left
            @charged.each_value { |costs| costs.map! { |cost| cost * left } }
          end
          @scored_at = now
        end

        def again(now)
          return "it will be tried again when a day has passed" unless @score.finite?
          hours = (HALF_LIFE * Math.log2(-@score) / 3_600.0).ceil
          "it will be tried again within #{hours} h"
        end
      end

      # How many answers a server gives on one connection, as far as it told or was seen to; and when that turns out to be wrong.
      class RequestLimit
        # How it was learnt: the server said so, it closed, or it said nothing any more.
        WAYS = {"word" => :word, "closing" => :closing, "silence" => :silence}.freeze
        HIGHEST = 1_000_000
        FIELD = /\bmax\s*=\s*(\d{1,6})/i
        private_constant :WAYS, :HIGHEST, :FIELD

        attr_reader :most

        def initialize(record = {})
          @most = @way = @closed_after = nil
          set(Integer(record["most"]).clamp(1, HIGHEST), WAYS.fetch(record["seen_by"], :word)) if record["most"]
        end

        # An answer came that may say how many follow it.
        def met(response)
          limit = response["keep-alive"].to_s[FIELD, 1]
          set([limit.to_i + 1, 2].max, :word) if limit && @most.nil?
        end

        # See {PipeliningPolicy#closed_after}.
        def closed_after(count, told: true)
          set(count, told ? :word : :closing) if count.positive? && (told || count == @closed_after)
          @closed_after = count
        end

        # The server gave so many answers, and then none.
        def silent_after(count)
          set(count, :silence) if count.positive?
        end

        # It was not the number that was at fault.
        def forgive
          set(nil, nil) if @way == :silence
        end

        # The server kept a connection open with that answer: if it said once that so many are all, that was for another reason.
        def kept_open(count)
          set(nil, nil) if @way == :word && count >= @most
        end

        # A connection still stood long after that answer: a server that closes after so many had closed it.
        def outlasted(count)
          set(nil, nil) if @way && @way != :silence && count >= @most
        end

        def record = {"most" => @most, "seen_by" => @way&.to_s}

        private

        def set(most, way)
          @most = most
          @way = way
        end
      end

      # Servers of which it is known that they answer pipelined requests wrongly, and proxies that are too old for them.
      module KnownOffenders
        # By how the field Server begins.
        NAMES = ["EFAServer/", "Microsoft-IIS/4.", "Microsoft-IIS/5.", "Netscape-Enterprise/3.", "Netscape-Enterprise/4.", "Netscape-Enterprise/5.",
          "Netscape-Enterprise/6.", "WebLogic 3.", "WebLogic 4.", "WebLogic 5.", "WebLogic 6.", "Winstone Servlet Engine v0."].freeze
        # RFC 9110, section 7.6.3: the protocol by which a proxy received the answer.
        OLD = %r{(?:\A|,)\s*(?:HTTP/)?1\.0\s}i
        private_constant :NAMES, :OLD

        module_function

        def name(response)
          server = response["server"] or return
          NAMES.find { |name| server.start_with?(name) }
        end

        def old_proxy?(response) = response.values("via").any? { |value| value.match?(OLD) }
      end

      # What the end of a connection teaches of its server.
      module FailureClassifier
        # Servers close what was idle for longer, and mean nothing by it, seconds.
        STALE = 1.0
        # An answer of such a status that is the last of its connection tells of an error, and not of how many the server gives.
        ERRORS = (400..)
        private_constant :STALE, :ERRORS

        module_function

        def draw(verdict, connection, cause, unanswered, wall)
          case cause
          when :corrupt, :doubtful then verdict.ban!(cause, wall)
          when :balked
            verdict.failed(:balked, wall)
            verdict.limit.silent_after(connection.pipeline.answered) if unanswered_probe?(connection)
          when :last then last(verdict, connection, unanswered)
          when :closed, :reset then closed(verdict, connection, cause, unanswered, wall)
          end
        end

        # Nothing came for long.
        def draw_from_silence(verdict, connection, what, wall)
          verdict.limit.silent_after(connection.pipeline.answered) if unanswered_probe?(connection)
          verdict.failed(what, wall)
        end

        # What did not come, or was refused, comes no sooner, or is refused as well, by itself: then it was not the pipeline that was at fault.
        def forgive(verdict, exchange, response, wall)
          what = exchange.suspected or return
          return unless (what == :balked) ? Pipeline::BALKS.include?(response.status) : StallDetector.late?(exchange)
          verdict.forgive(what, wall)
          exchange.suspected = nil
        end

        def unanswered_probe?(connection) = connection.probing && !connection.pipeline.midway?
        private_class_method :unanswered_probe?

        def last(verdict, connection, unanswered)
          verdict.closed_after(connection.pipeline.answered) if unanswered.any? && !ERRORS.cover?(connection.pipeline.last_status)
        end
        private_class_method :last

        def closed(verdict, connection, cause, unanswered, wall)
          return if unanswered.empty?
          verdict.closed_after(connection.pipeline.answered, told: false) if connection.rested < STALE
          verdict.failed(connection.probing ? :discarded : cause, wall) if unanswered.size > 1
        end
        private_class_method :closed
      end
    end
  end
end
