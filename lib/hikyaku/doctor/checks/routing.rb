# frozen_string_literal: true

require "uri"
require_relative "../check"
require_relative "../client"
require_relative "../../config/settings"

module Hikyaku
  class Doctor
    module Checks
      # What clients must know to get a token, at a path that follows from the hub's URL (RFC 9728; Mercure draft-08,
      # section "Protected Resource Metadata").
      class Metadata < Check
        about "metadata (RFC 9728)"

        WELL_KNOWN = "/.well-known/oauth-protected-resource"
        PRIVATE = /\A(?:localhost|127\.|10\.|192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.|\[?::1|[^.]+\z)/i
        private_constant :WELL_KNOWN, :PRIVATE

        private

        def perform
          answer = client.request("GET", target)
          document = answer.json if answer.status == 200 && answer.type == "application/json"
          return missing(answer) unless document
          visit.metadata = document
          judge(document["resource"])
        end

        # RFC 9728, section 3: between host and path; a path that is only a slash goes.
        def target = "#{WELL_KNOWN}#{place.path unless place.path == "/"}"

        def missing(answer)
          what = (answer.status == 200) ? "a #{answer.type || "page"} is there" : "#{answer.status} is answered"
          whose = (visit.hikyaku? && answer.problem?) ? ": the hub has another URL in mind, or another path" : ""
          warning("not at #{target}: #{what}#{whose}", :metadata)
        end

        def judge(resource)
          return warning("the document at #{target} names no resource", :metadata) unless resource.is_a?(String)
          return ok("at #{target}") if place.same?(resource)
          # A socket has no URL to compare with.
          return ok("at #{target}, of #{Words.quote(resource)}") if place.unix?
          message = "the hub calls itself #{Words.quote(resource)}, not #{place}: clients that compare (RFC 9728) give up, and tokens must be made for that name"
          inner?(resource) ? failed(message, :identifier) : warning(message, :identifier)
        end

        # An address of the inside, told to everybody.
        def inner?(resource)
          host = resource[%r{\Ahttps?://([^/?#]+)}i, 1] or return false
          !place.local? && host.match?(PRIVATE)
        end
      end

      # Whether a page of the application leads to the hub (Mercure draft-08, section "Hub Discovery").
      class Discovery < Check
        about "the Link of a page"

        LINK = /<([^>]*)>((?:\s*;\s*[a-z*-]+\s*=\s*(?:"(?:[^"\\]|\\.)*"|[^\s",;]+))*)/i
        RELATION = /;\s*rel\s*=\s*(?:"([^"]*)"|([^\s";,]+))/i
        private_constant :LINK, :RELATION

        private

        def perform
          return skipped("not checked: give --page URL, a page that should lead to the hub") unless options.page
          page = page_place
          answer = Client.new(page).request("GET")
          return failed("#{page} answers #{answer.status}", :page) unless answer.status == 200
          judge(page, links(answer["link"].to_s))
        end

        def page_place
          page = Place.new(options.page, connect: options.connect, ca_file: options.ca_file)
          # The address that was given is the hub's; a page elsewhere is where its name leads.
          (page.origin == place.origin) ? page : Place.new(options.page, ca_file: options.ca_file)
        end

        def links(header)
          header.scan(LINK).filter_map do |target, parameters|
            relation = parameters[RELATION] && ($1 || $2)
            target if relation.to_s.downcase.split.include?("mercure")
          end
        end

        def judge(page, targets)
          return failed("#{page} has no Link with rel=\"mercure\"", :discovery) if targets.empty?
          urls = targets.map { |target| URI.join(page.to_s, target).to_s }
          return ok("#{page} leads to the hub") if urls.any? { |url| place.same?(url) }
          failed("#{page} leads to #{Words.quote(urls.first)}, not to #{place}", :discovery)
        rescue URI::Error
          failed("#{page} has a Link to what is no URL: #{Words.quote(targets.first)}", :discovery)
        end
      end

      # Whether all of the hub is there: what lies below its path, and every method.
      class Paths < Check
        about "all paths and methods"

        # Nobody's: they are refused by the hub, or by who does not pass them on.
        BELOW = {"GET" => "subscriptions", "POST" => "streams/doctor", "DELETE" => "subscribers/doctor"}.freeze
        private_constant :BELOW

        private

        def perform
          return skipped("not checked: this hub does not refuse as Hikyaku does, so who answers cannot be told") unless visit.hikyaku?
          lost = BELOW.reject { |method, path| hub?(method, "#{place.path.chomp("/")}/#{path}") }.map { |method, path| "#{method} …/#{path[/\A\w+/]}" }
          lost << "HEAD" unless passed?(client.request("HEAD"))
          findings = lost.empty? ? [] : [warning("the hub does not get all that is sent to it: #{Words.list(lost)} is answered by something else", :paths, lost: lost)]
          findings << query
          findings.compact.empty? ? ok("what is below #{place.path}, and each method, gets to the hub") : findings
        end

        def hub?(method, target) = passed?(client.request(method, target, form: ([] if method == "POST")))

        # By now the hub has been seen to answer with problem documents; HEAD has none to show, but its type.
        def passed?(answer) = answer.problem?

        def query
          answer = client.request("QUERY", form: [])
          warning("QUERY, with which clients send more matchers than a URL holds, is answered #{answer.status} by something else", :query) unless passed?(answer)
        end
      end

      # What should not be there for everybody: developer mode, the secret of development images, figures.
      class Exposure < Check
        about "what is open to everybody"

        private

        def perform
          found = [developer, known_secret, metrics].compact
          return ok("neither developer mode nor figures") if found.empty?
          return found unless place.local?
          ok("on this machine only: #{found.map(&:message).join("; ")}")
        end

        def developer
          answer = client.request("GET", "#{place.path.chomp("/")}/ui/")
          failed("the developer page is there (developer mode): it lets everybody in, and makes tokens", :development) if answer.status == 200 && answer.type == "text/html" && answer.body.include?("Hikyaku")
        end

        # Whoever reads it here could sign tokens that this hub believes. A token that is refused is 401, whoever is let in.
        def known_secret
          token = visit.credentials.trial(Config::Settings::DEVELOPMENT_SECRET, issuer: "hikyaku", audience: visit.resource || place.to_s)
          stream = client.stream([%w[match urn:hikyaku:doctor]], headers: {"authorization" => "Bearer #{token}"})
          stream.wait(options.hold) { stream.head }
          failed("the hub believes tokens that are signed with the secret of development images, which everybody knows", :development) if stream.stream? && refuses_others?
        ensure
          stream&.close
        end

        # Else it has not looked at the token at all.
        def refuses_others?
          token = visit.credentials.trial("not the secret of anybody, only of a try", issuer: "hikyaku", audience: visit.resource || place.to_s)
          client.request("GET", "#{place.target}#{place.target.include?("?") ? "&" : "?"}match=urn:hikyaku:doctor", headers: {"authorization" => "Bearer #{token}"}).status == 401
        end

        def metrics
          answer = client.request("GET", "/metrics")
          return unless answer.status == 200 && answer.body.include?("hikyaku_")
          # Only the loop of the engine in C turns.
          engine = answer.body.include?("hikyaku_loop_turns_total") ? "C" : "Ruby"
          warning("/metrics shows the hub's figures to everybody (engine in #{engine})", :metrics, engine: engine)
        end
      end

      # Whether the head of a stream says to caches and proxies what the hub says to them.
      class Headers < Check
        about "the head of a stream"

        STORED = /\bpublic\b|\b(?:s-maxage|max-age)\s*=\s*"?[1-9]/i
        private_constant :STORED

        private

        def perform
          needs_stream!
          stream = visit.subscribe
          return skipped("not checked: no head came; see flush") unless stream.wait(options.hold) { stream.head }
          found = [type(stream), framing(stream), caching(stream), buffering(stream)].flatten.compact
          found.empty? ? ok(fine(stream)) : found
        ensure
          stream&.close
        end

        def type(stream)
          return failed("a subscribe is answered #{stream.status}", Advice.defect_of(stream.status)) unless stream.status == 200
          return failed("its type is #{stream.type || "missing"}, not text/event-stream: clients refuse it", :headers) unless stream.type == "text/event-stream"
          charset = stream["content-type"][/charset\s*=\s*"?([^\s";]+)/i, 1]
          warning("its type says charset=#{Words.quote(charset)}: event streams are UTF-8", :headers) unless charset.nil? || charset.casecmp?("utf-8")
        end

        def framing(stream)
          failed("it has a Content-Length: something has read a stream to its end before it passed it on", :buffering) if stream["content-length"]
        end

        def caching(stream)
          stored = stream["age"].to_i > 0 || [stream["x-cache"], stream["cf-cache-status"]].any? { |value| value.to_s.match?(/\bhit\b/i) }
          return failed("it comes out of a cache", :cache) if stored
          control = stream["cache-control"]
          return warning("it has no Cache-Control: a cache may keep it, and a proxy may change it", :headers) unless control
          return failed("its Cache-Control lets caches keep it: #{Words.quote(control)}", :cache) if control.match?(STORED)
          warning("its Cache-Control is #{Words.quote(control)}: neither no-store nor no-cache", :headers) unless control.match?(/\bno-(?:store|cache)\b/i)
        end

        # nginx takes it out, having obeyed.
        def buffering(stream)
          value = stream["x-accel-buffering"]
          warning("it says X-Accel-Buffering: #{Words.quote(value)}, which asks proxies to buffer", :headers) if value && !value.casecmp?("no")
        end

        def fine(stream)
          hint = stream["x-accel-buffering"] ? "X-Accel-Buffering: no is there" : "X-Accel-Buffering was taken out on the way, as nginx does"
          "text/event-stream, #{Words.quote(stream["cache-control"])}; #{hint}"
        end
      end

      # Whether a token of many topics gets to the hub: servers in front bound how long a header field may be, nginx at 8 KB unless
      # it is told otherwise.
      class Length < Check
        about "long tokens"

        # What a hub takes unless it is told otherwise (max_token_bytes).
        WANTED = 16_384
        STEP = 256
        private_constant :WANTED, :STEP

        private

        def perform
          return skipped("not checked: this hub does not refuse as Hikyaku does, so who answers cannot be told") unless visit.hikyaku?
          return ok("a token of #{Words.bytes(WANTED)} gets to the hub") if arrives?(WANTED)
          longest = STEP * (0...WANTED / STEP).bsearch { |steps| !arrives?(STEP * (steps + 1)) }
          warning("a token of more than #{longest} bytes is refused on the way (#{@answered}): pages that follow many streams have such", :length, bytes: longest)
        end

        # It is no token; the hub says so.
        def arrives?(bytes)
          answer = client.request("POST", headers: {"authorization" => "Bearer #{"x" * bytes}"}, form: [%w[topic urn:hikyaku:doctor]])
          return true if answer.problem?
          @answered = answer.status
          false
        rescue ConnectionFailed
          @answered ||= "the connection was closed"
          false
        end
      end
    end
  end
end
