# frozen_string_literal: true

require_relative "../content_coding"
require_relative "kind"
require_relative "reply"
require_relative "scanner"

module Hikyaku
  module HTTP
    class Proxy
      # One GET of a browser, answered by what was fetched ahead or else by the client, as it comes. A page is read as it passes, and what it contains is
      # fetched ahead.
      class Getting
        HTML = %r{\A\s*(?:text/html|application/xhtml\+xml)\s*(?:;|\z)}i
        CHARSET = /charset\s*=\s*"?([^\s";]+)/i
        MOST_SCANNED = 4_194_304 # bytes of a page, decoded
        # What a browser says of a page, and not of what is in it.
        OF_A_PAGE = %w[accept upgrade-insecure-requests if-none-match if-modified-since range if-range].freeze
        private_constant :HTML, :CHARSET, :MOST_SCANNED, :OF_A_PAGE

        # @param proxy [Proxy]
        # @param wire [Wire]
        # @param request [Parser::Request]
        # @param upstream [Forwarding::Upstream]
        # @param user [String, nil]
        def initialize(proxy, wire, request, upstream, user)
          @proxy = proxy
          @wire = wire
          @request = request
          @via = upstream.via
          @address = Address.exact(upstream.authority.to_s, upstream.target)
          @headers = upstream.headers.filter_map { |name, value| [name.downcase, value] unless name == "Host" }
          @credentials = proxy.clients.credentials(user, @headers)
          @client = proxy.clients.for(@credentials)
          @kind = Kind.of(@address, @headers)
          @begun = false
        end

        # @return [Boolean] whether another request may follow
        # @raise [RequestFailed] before anything was answered
        # @raise [Wire::Gone]
        def run
          ahead = @proxy.prefetcher.take(@address, headers: @headers, credentials: @credentials, now: now) if @proxy.ahead?
          (ahead && give(ahead)) || ask
        end

        private

        # @return [Boolean, nil] nil when it came to nothing
        def give(ahead)
          ahead.note.wanted(now)
          outcome = ahead.fetch.outcome
          return refused_ahead(ahead) if outcome.error || (ahead.slim && outcome.status >= 400)
          learn(outcome)
          return unless ahead.suits?(@headers, outcome)
          ahead.note.finish(outcome.status, outcome.body.bytesize, now)
          return send_whole(304, outcome, "") if unchanged?(outcome)
          send_whole(outcome.status, outcome, outcome.body)
        end

        def refused_ahead(ahead)
          @proxy.fields.refused(@address.origin, @kind) if ahead.slim && !ahead.fetch.outcome.error
          nil
        end

        # RFC 9110, section 13.1.2: the browser has it already.
        def unchanged?(outcome)
          asked = @headers.assoc("if-none-match")&.last or return false
          tag = outcome["etag"] or return false
          outcome.status == 200 && (asked.strip == "*" || asked.scan(/(?:W\/)?"[^"]*"/).any? { |one| weak(one) == weak(tag) })
        end

        def weak(tag) = tag.delete_prefix("W/")

        def send_whole(status, outcome, body)
          reply = reply(status, outcome, (status == 304) ? nil : body.bytesize)
          @wire.write(reply.head + body)
          !reply.close?
        end

        def reply(status, answer, length)
          via = @via ? [["Via", "#{answer.http_version} #{@via}"]] : []
          Reply.new(status, answer.headers.reject { |field| field.first == "content-length" }, @request, length: length, own: via)
        end

        def ask
          sent = @proxy.fields.for(@address.origin, @kind, @headers)
          slim = sent.size < @headers.size
          note = (@kind == :document) ? page.add(@address.url, @kind, :pipeline, now) : page_of_referer&.add(@address.url, @kind, :pipeline, now)
          @client.open(@address, headers: sent, alone: false, priority: (@kind == :document) ? 0 : nil) do |stream|
            if slim && stream.status >= 400
              @proxy.fields.refused(@address.origin, @kind)
              next nil
            end
            learn(stream)
            next nil if slim && Fields.missed?(stream["vary"], @headers, sent)
            pass(stream, note)
          end.then { |kept| kept.nil? ? ask : kept }
        end

        def page = @page ||= @proxy.visits.begin(@address.url, ahead: @proxy.ahead?, now: now)

        def page_of_referer = @proxy.visits.of(@request["referer"])

        def learn(answer)
          @proxy.fields.answered(@address.origin, @kind, answer.status, answer["vary"])
        end

        # Once the head is written nothing can be said but by breaking off.
        def pass(stream, note)
          reply = reply(stream.status, stream, stream["content-length"]&.to_i)
          scan = scan_of(stream)
          @wire.write(reply.head)
          @begun = true
          bytes = 0
          stream.each do |piece|
            bytes += piece.bytesize
            scan&.call(piece)
            @wire.write(reply.body(piece))
          end
          @wire.write(reply.finish)
          note&.finish(stream.status, bytes, now)
          !reply.close?
        rescue RequestFailed
          raise unless @begun
          raise Wire::Gone
        end

        # What a page contains is asked for as soon as it is seen.
        #
        # @return [Proc, nil] takes bytes
        def scan_of(stream)
          return unless @proxy.ahead? && @kind == :document && stream.status == 200 && stream["content-type"].to_s.match?(HTML)
          return if stream["set-cookie"] # then the browser will say another thing than we know of
          scanner = Scanner.new(base: @address.url, charset: stream["content-type"][CHARSET, 1], policies: policies_of(stream))
          decoder = decoder_of(stream)
          seen = 0
          ->(piece) do
            next if scanner.done? || seen > MOST_SCANNED
            text = decoder ? decoder << piece : piece
            seen += text.bytesize
            fetch(scanner << text)
          rescue ContentCoding::Corrupt, ContentCoding::TooLarge
            seen = MOST_SCANNED + 1
          end
        rescue ContentCoding::Unsupported
          nil
        end

        # What an Integrity-Policy asks of scripts and style sheets is not read: none is sure to be loaded.
        def policies_of(stream)
          policies = stream.headers.filter_map { |name, value| value if name == "content-security-policy" }
          stream["integrity-policy"] ? [*policies, "script-src 'none'; style-src 'none'"] : policies
        end

        def decoder_of(stream)
          ContentCoding.decoder(stream["content-encoding"].to_s.split(","), max_bytes: MOST_SCANNED)
        end

        def fetch(inlines)
          return if inlines.empty?
          headers = @headers.reject { |field| OF_A_PAGE.include?(field.first) } + [["referer", @address.url]]
          @proxy.prefetcher.fetch(inlines, page: page, client: @client, origin: @address.origin, headers: headers, credentials: @credentials, now: now)
        end

        def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      end
    end
  end
end
