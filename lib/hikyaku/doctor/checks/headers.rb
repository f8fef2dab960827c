# frozen_string_literal: true

require_relative "../check"

module Hikyaku
  class Doctor
    module Checks
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
    end
  end
end
