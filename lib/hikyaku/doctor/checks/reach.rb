# frozen_string_literal: true

require_relative "../check"
require_relative "../front"

module Hikyaku
  class Doctor
    module Checks
      # Whether a hub answers at the URL, and what stands in front of it.
      class Reach < Check
        about "a hub answers"

        MOST_REDIRECTS = 3
        REDIRECTS = [301, 302, 303, 307, 308].freeze
        private_constant :MOST_REDIRECTS, :REDIRECTS

        private

        def perform
          found = []
          answer = ask
          while REDIRECTS.include?(answer.status) && answer["location"]
            found << follow(answer, found.size)
            return found if found.last.level == :fail
            answer = ask
          end
          visit.answer = answer
          visit.front = Front.new(answer, given: options.behind)
          [*found, judge(answer)]
        rescue ConnectionFailed => error
          visit.stop("nothing answers")
          failed(error.message, :unreachable)
        end

        def ask = client.request("GET", headers: {"accept" => "text/event-stream"})

        def follow(answer, count)
          target = place.redirected(answer["location"])
          if count >= MOST_REDIRECTS || (place.tls? && !target.tls?)
            visit.stop("it redirects elsewhere")
            return failed("#{place} redirects to #{Words.quote(target.to_s)}: #{(count >= MOST_REDIRECTS) ? "one time too many" : "that is not encrypted"}", :redirect)
          end
          from = place.to_s
          kept = visit.move(target) ? "" : " (keys and tokens stay behind: give that URL here, too)"
          warning("#{from} redirects to #{Words.quote(target.to_s)} (#{answer.status}), where the rest is checked#{kept}: give clients that URL; many do not follow", :redirect)
        rescue ConfigError
          visit.stop("it redirects elsewhere")
          failed("#{place} redirects (#{answer.status}) to what is no URL", :redirect)
        end

        def judge(answer)
          front = visit.front.to_s
          behind = front.empty? ? "" : ", behind #{Words.quote(front)}"
          reason = unlike(answer)
          return ok("#{place} answers in #{seconds(answer.head_seconds)}#{behind}", address: answer.address, seconds: answer.head_seconds, front: visit.front.names) unless reason
          visit.stop("no hub answers at this URL")
          # Where nothing is at the path, the URL is the first thing to doubt.
          failed("#{place}#{behind}: #{reason}", (answer.status == 404) ? :place : Advice.defect_of(answer.status))
        end

        # Without a matcher a hub refuses, or asks for a token.
        def unlike(answer)
          case answer.status
          when 200 then "a #{answer.type || "page"} is there, not a hub" unless answer.type == "text/event-stream"
          when 400, 401, 405, 406 then nil
          when 404 then "there is nothing at this path; a hub is usually at /.well-known/mercure"
          when 429 then "too many connections come from here (429)"
          when 500.. then "#{answer.status}: what stands in front does not reach the hub, or the hub is broken"
          else "#{answer.status}: no hub answers so; something in front of it does"
          end
        end
      end
    end
  end
end
