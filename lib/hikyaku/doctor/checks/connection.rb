# frozen_string_literal: true

require "openssl"
require "time"
require_relative "../check"
require_relative "../options"
require_relative "../client"

module Hikyaku
  class Doctor
    module Checks
      # Whether clients can believe who the hub is, and for how long.
      class Certificate < Check
        about "the certificate"

        # The share of its life after which it should have been renewed: those who renew do so when a third is left.
        LATE = 0.2
        DAY = 86_400
        private_constant :LATE, :DAY

        private

        def perform
          return [] unless place.tls?
          client.connect(verify: false) { |connection| judge(connection.tls) }
        rescue ConnectionFailed
          # The next check says so.
          []
        end

        def judge(tls)
          certificate = tls.peer_cert
          wrong(tls, certificate)&.then do |found|
            visit.stop("clients refuse the certificate")
            return found
          end
          left = certificate.not_after - Time.now
          share = left / (certificate.not_after - certificate.not_before)
          valid = "valid for #{Words.long(left)} more"
          return warning("#{valid}, which is the last fifth of its life: renewal does not work", :certificate, seconds_left: left) if share < LATE
          ok("of #{Words.quote(names(certificate))}, #{valid}, #{tls.ssl_version}", seconds_left: left)
        end

        def wrong(tls, certificate)
          now = Time.now
          if now > certificate.not_after then failed("it has expired #{Words.long(now - certificate.not_after)} ago", :certificate)
          elsif now < certificate.not_before then failed("it is not valid before #{certificate.not_before.utc.iso8601}: or the clock here is wrong", :certificate)
          elsif !OpenSSL::SSL.verify_certificate_identity(certificate, place.host)
            failed("it is for #{Words.quote(names(certificate))}, not for #{place.host}", :certificate)
          elsif tls.verify_result != OpenSSL::X509::V_OK
            failed("it is not by an authority that is trusted here: #{reason(tls.verify_result)}", :chain)
          end
        end

        def names(certificate)
          extension = certificate.extensions.find { |each| each.oid == "subjectAltName" }
          extension ? extension.value.gsub(/(?:DNS|IP Address):/, "") : certificate.subject.to_s
        end

        def reason(code)
          {OpenSSL::X509::V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT => "it is signed by itself",
           OpenSSL::X509::V_ERR_SELF_SIGNED_CERT_IN_CHAIN => "the chain ends with an authority of its own",
           OpenSSL::X509::V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY => "the certificate of who signed it is missing",
           OpenSSL::X509::V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE => "the certificate of who signed it is missing"}
            .fetch(code) { "OpenSSL's error #{code}" }
        end
      end

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

      # Whether tokens and cookies can travel readable: what becomes of plain HTTP.
      class Plain < Check
        about "plain HTTP"

        # After these a client repeats a POST as one.
        KEEP_METHOD = [307, 308].freeze
        private_constant :KEEP_METHOD

        private

        def perform
          return unencrypted unless place.tls?
          port = options.http_port || (80 if place.port == 443)
          return skipped("not checked: give --http-port PORT, where plain HTTP is answered") unless port
          judge(Client.new(place.plain(port)).request("POST", form: []), port)
        rescue ConnectionFailed
          ok("port #{port} answers no plain HTTP")
        end

        def unencrypted
          return [] if place.local?
          warning("tokens and cookies travel readable", :tls)
        end

        def judge(answer, port)
          location = answer["location"].to_s
          return failed("port #{port} does not send clients to https: it answers #{answer.status}", :plain) unless answer.status.between?(300, 399) && location.match?(%r{\Ahttps://}i)
          lost = KEEP_METHOD.include?(answer.status) ? "" : ", after which many repeat a POST as a GET: let publishers use the https URL"
          ok("port #{port} sends clients to https (#{answer.status})#{lost}")
        end
      end

      # Over HTTP/1.1 a browser opens six connections to a host, over all tabs: the seventh stream waits for ever.
      class Http2 < Check
        about "more than six streams a browser"

        SIX = "a browser has six connections to a host, over all its tabs"
        private_constant :SIX

        private

        def perform
          return plain unless place.tls?
          client.connect(alpn: %w[h2 http/1.1]) do |connection|
            return ok("HTTP/2 is offered") if connection.tls.alpn_protocol == "h2"
            warning("HTTP/2 is not offered, and over HTTP/1.1 #{SIX}", :http2)
          end
        end

        def plain
          return ok("plain HTTP on this machine, over which #{SIX}: well for trying out") if place.local?
          warning("this is plain HTTP, over which #{SIX}; browsers speak HTTP/2 with TLS only", :tls)
        end
      end

      # Whether the hub's clock and this one agree: tokens say until when they are good.
      class Clock < Check
        about "the clocks"

        # Seconds of difference: nobody notices, and tokens of a minute fail.
        SMALL = 5
        LARGE = 60
        private_constant :SMALL, :LARGE

        private

        def perform
          date = date_of(visit.answer)
          return warning("the answer has no Date, so the clocks cannot be compared", :headers) unless date
          # Date is cut to whole seconds, and was written at some moment between question and answer.
          early = date - visit.answer.answered_at
          late = date + 1 - visit.answer.asked_at
          [judge(early, late), *tokens(date)]
        end

        def date_of(answer)
          Time.httpdate(answer["date"].to_s)
        rescue ArgumentError
          nil
        end

        def judge(early, late)
          difference = [early, -late, 0].max
          return ok("they agree", skew: 0.0) if difference.zero?
          skew = (early > 0) ? difference : -difference
          message = "the server's clock is #{Words.long(difference)} #{(skew > 0) ? "ahead of" : "behind"} the one here"
          return ok("#{message}, which does no harm", skew: skew) if difference <= SMALL
          (difference < LARGE) ? warning(message, :clock, skew: skew) : failed(message, :clock, skew: skew)
        end

        # Those that were made elsewhere, by the hub's clock.
        def tokens(date)
          Credentials::ROLES.select { |role| visit.credentials.given?(role) }.filter_map { |role| token(role, visit.credentials.claims(role), date) }.uniq(&:message)
        end

        def token(role, claims, date)
          expires, issued = claims.values_at("exp", "iat").map { |value| value if value.is_a?(Numeric) }
          if expires && expires <= date.to_i then failed("by the server's clock the #{role}'s token has expired #{Words.long(date.to_i - expires)} ago", :token)
          elsif issued && issued > date.to_i + SMALL then warning("by the server's clock the #{role}'s token was issued #{Words.long(issued - date.to_i)} in the future", :clock)
          end
        end
      end
    end
  end
end
