# frozen_string_literal: true

require_relative "../content_coding"
require_relative "clients"
require_relative "fields"
require_relative "forwarding"
require_relative "kind"
require_relative "reply"
require_relative "scanner"

module Hikyaku
  module HTTP
    class Proxy
      # One GET of a browser, answered by what was fetched ahead or else by the client, as it comes. A page is read as it passes, and what it contains is
      # fetched ahead.
      class Getting
        EVENTS = %r{\A\s*text/event-stream\s*(?:;|\z)}i
        HTML = %r{\A\s*(?:text/html|application/xhtml\+xml)\s*(?:;|\z)}i
        CHARSET = /charset\s*=\s*"?([^\s";]+)/i
        MOST_SCANNED = 4_194_304 # bytes of a page, decoded
        # What a browser says of a page, and not of what is in it.
        OF_A_PAGE = %w[accept upgrade-insecure-requests if-none-match if-modified-since range if-range].freeze
        private_constant :EVENTS, :HTML, :CHARSET, :MOST_SCANNED, :OF_A_PAGE

        # @param proxy [Proxy]
        # @param wire [Wire]
        # @param request [Parser::Request]
        # @param upstream [Forwarding::Upstream]
        # @param account [Account] of who asks
        def initialize(proxy, wire, request, upstream, account)
          @proxy = proxy
          @account = account
          @wire = wire
          @request = request
          @via = upstream.via
          @address = Address.exact(upstream.authority.to_s, upstream.target)
          @headers = upstream.headers.filter_map { |name, value| [name.downcase, value] unless name == "Host" }
          @credentials = account.credentials(@headers)
          @kind = Kind.of(@address, @headers)
          @begun = false
        end

        # @return [Boolean, Symbol] whether another request may follow; :events when it wants a connection of its own, as its answer has no end
        # @raise [RequestFailed, Forwarding::Refused] before anything was answered
        # @raise [Wire::Gone]
        def run
          @account.prefetcher.turn_page(@address.origin, @credentials) if @kind == :document
          ahead = @account.prefetcher.take(@address, headers: @headers, credentials: @credentials, now: now) if @account.ahead?
          @account.clients.use(@credentials) do |client|
            @client = client
            given = ahead && give(ahead)
            given.nil? ? ask : given
          end
        rescue Wire::Gone
          @account.prefetcher.leave(@page) if @page
          raise
        end

        private

        # @return [Boolean, nil] nil when it came to nothing
        def give(ahead)
          ahead.note.wanted(now)
          outcome = ahead.fetch.outcome
          return if outcome.error || outcome.status == 407 # as of an answer to the browser: see {#ask}
          return refused_ahead if ahead.slim && outcome.status >= 400
          learn(outcome)
          return unless ahead.suits?(@headers, outcome)
          ahead.note.finish(outcome.status, outcome.body.bytesize, now)
          return send_whole(304, outcome, "") if unchanged?(outcome)
          send_whole(outcome.status, outcome, outcome.body)
        end

        def refused_ahead
          @proxy.fields.refused(@address.origin, @kind)
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

        # With fewer fields than the browser's it may come to nothing: then once more, with those that were missed.
        def ask
          sent = @proxy.fields.for(@address.origin, @kind, @headers)
          found = ask_with(sent) { |stream| (sent.size < @headers.size) ? wanting(stream, sent) : nil }
          found.is_a?(Array) ? ask_with(found) : found
        end

        # @yieldparam stream [Client::Stream]
        # @yieldreturn [Array, nil] what to ask with instead
        # @return [Boolean, Symbol, Array] see {#run}
        def ask_with(sent)
          note = (@kind == :document) ? page.add(@address.url, @kind, :pipeline, now) : page_of_referer&.add(@address.url, @kind, :pipeline, now)
          @client.open(@address, headers: sent, alone: false, priority: (@kind == :document) ? 0 : nil) do |stream|
            Forwarding.check_status(stream.status)
            more = yield stream if block_given?
            next more if more
            learn(stream)
            next :events if stream["content-type"].to_s.match?(EVENTS)
            pass(stream, note)
          end
        end

        # @return [Array<Array(String, String)>, nil] the fields that it has to be asked with; nil: it is an answer
        def wanting(stream, sent)
          if stream.status >= 400
            @proxy.fields.refused(@address.origin, @kind)
            return @headers
          end
          return unless Fields.missed?(stream["vary"], @headers, sent)
          learn(stream)
          names = Fields.named(stream["vary"])
          names.include?("*") ? @headers : @headers.select { |field| sent.include?(field) || names.include?(field.first) }
        end

        def page = @page ||= @account.visits.begin(@address.url, ahead: @account.ahead?, now: now)

        def page_of_referer = @account.visits.of(@request["referer"])

        def learn(answer)
          @proxy.fields.answered(@address.origin, @kind, answer["vary"])
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
          return unless @account.ahead? && @kind == :document && stream.status == 200 && stream["content-type"].to_s.match?(HTML)
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
          @account.prefetcher.fetch(inlines, page: page, client: @client, origin: @address.origin, headers: headers, credentials: @credentials, now: now)
        end

        def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      end
    end
  end
end
