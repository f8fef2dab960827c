# frozen_string_literal: true

require_relative "../../support/clock"
require_relative "clients"
require_relative "fields"
require_relative "forwarding"
require_relative "kind"
require_relative "reading"
require_relative "reply"

module Hikyaku
  module HTTP
    class Proxy
      # One GET of a browser, answered by what was fetched ahead or else by the client, as it comes. A page is read as it passes, and what it contains is
      # fetched ahead.
      class Getting
        include Support::Clock

        EVENTS = %r{\A\s*text/event-stream\s*(?:;|\z)}i
        MOST_IN_VAIN = 65_536 # bytes of an answer that the browser has already
        private_constant :EVENTS, :MOST_IN_VAIN

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
          @begun = @framed = @left = @mistaken = false
        end

        def run
          (@kind == :document) ? turn_page : ask_for_part
          @account.prefetcher.heard(@kind, @headers)
          ahead = @account.prefetcher.take(@address, headers: @headers, credentials: @credentials, now: now) if @account.ahead?
          @account.clients.use(@credentials, @address.origin) do |client|
            @client = client
            @account.prefetcher.fetch_passed_over(client: client, credentials: @credentials, now: now) if @mistaken
            @proxy.watch.over(@wire, method(:leave)) do
              given = ahead && give(ahead)
              given.nil? ? ask : given
            end
          end
        rescue Wire::Gone
          leave_page
          raise
        end

        private

        # The browser has left.
        def leave
          @left = true
          leave_page unless @kind == :document
          [@client, @stream] if @stream
        end

        # Who breaks off what a page asks for may turn it, or may not want this one thing. It is known when another page is asked for, before or after.
        def leave_page
          return @framed || @account.prefetcher.leave(@page) if @page
          page = page_named or return
          page.left = true
          @account.prefetcher.leave(page) unless page.equal?(@account.visits.newest)
        end

        # What a frame shows is a part of its page. Which page was turned, the Referer says, and what was broken off; another window turns none.
        def turn_page
          @account.given.turn_page(@address.origin, @headers)
          @page = @account.visits.framing(@address.url, @request["referer"]) || (page_named if Kind.framed?(@headers))
          @framed = !@page.nil? || Kind.framed?(@headers)
          @account.prefetcher.turn_page(@credentials, to: @address.url, from: @request["referer"]) unless @framed
        end

        def ask_for_part
          page_named&.left = false
          @account.prefetcher.asked(@address.url)
          @mistaken = @account.given.asked(@address, @headers) && @account.ahead?
        end

        def give(ahead)
          ahead.note.wanted(now)
          stream = @stream = ahead.fetch
          return if stream.status == 407 # as of an answer to the browser: see {#ask}
          return if ahead.slim && Fields.refusal?(stream.status)
          return unless ahead.suits?(@headers, stream)
          return send_unchanged(stream) if unchanged?(stream)
          stream.done? ? send_whole(stream.status, stream, stream.read) : pass(stream)
        rescue RequestFailed
          raise Wire::Gone if @left
          nil # nothing of it was passed on: it is asked for anew
        ensure
          stream&.close
        end

        # The rest of it comes for the cache, where it is not long.
        def send_unchanged(stream)
          again = send_whole(304, stream, "")
          left = MOST_IN_VAIN
          stream.each { |piece| break if (left -= piece.bytesize).negative? }
          again
        rescue RequestFailed
          again
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
          given(outcome)
          !reply.close?
        end

        def reply(status, answer, length)
          via = @via ? [["Via", "#{answer.http_version} #{@via}"]] : []
          Reply.new(status, answer.headers.reject { |field| field.first == "content-length" }, @request, length: length, own: via, last: @wire.ending?)
        end

        # With fewer fields than the browser's it may come to nothing: then once more, with those that were missed.
        def ask
          sent = @proxy.fields.for(@address.origin, @kind, @headers)
          found = ask_with(sent) { |stream| (sent.size < @headers.size) ? wanting(stream, sent) : nil }
          found.is_a?(Array) ? ask_with(found) : found
        end

        def ask_with(sent)
          note = (@kind == :document) ? page.add(@address.url, @kind, :pipeline, now) : page_of_referer&.add(@address.url, @kind, :pipeline, now)
          @client.open(@address, headers: sent, alone: false, priority: (@kind == :document) ? 0 : nil) do |stream|
            @stream = stream
            stream.each_interim { |response| say_before(response) }
            Forwarding.check_status(stream.status)
            more = yield stream if block_given?
            next more if more
            learn(stream)
            next :events if stream["content-type"].to_s.match?(EVENTS)
            note&.cached if stream.cached?
            pass(stream, note)
          end
        ensure
          note.finish(nil, 0, now) if note && note.ended_at.nil?
        end

        # RFC 9110, section 15.2.
        def say_before(response)
          bytes = Forwarding.interim(response, @request, via: @via)
          @wire.write(bytes) if bytes
        end

        def wanting(stream, sent)
          if Fields.refusal?(stream.status)
            @proxy.fields.refused(@address.origin, @kind)
            return @headers
          end
          names = Fields.decisive(stream, @kind, @headers)
          return unless Fields.missed?(names, @headers, sent)
          learn(stream)
          names.include?("*") ? @headers : @headers.select { |field| sent.include?(field) || names.include?(field.first) }
        end

        def page = @page ||= @account.visits.begin(@address.url, ahead: @account.ahead?, now: now)

        def page_named = @account.visits.named(@request["referer"])

        def page_of_referer = @account.visits.of(@request["referer"])

        def learn(answer)
          @proxy.fields.answered(@address.origin, @kind, Fields.lasting(answer, @kind))
        end

        # Once the head is written nothing can be said but by breaking off.
        def pass(stream, note = nil)
          reply = reply(stream.status, stream, stream["content-length"]&.to_i)
          reading = reading_of(stream)
          @wire.write(reply.head)
          @begun = true
          bytes = 0
          stream.each do |piece|
            bytes += piece.bytesize
            reading&.take(piece)
            @wire.write(reply.body(piece))
          end
          @wire.write(reply.finish)
          given(stream)
          note&.finish(stream.status, bytes, now)
          !reply.close?
        rescue RequestFailed
          raise unless @begun
          raise Wire::Gone
        end

        # What a page contains is asked for as soon as it is seen. With a cookie the browser will say another thing than we know of.
        def reading_of(stream)
          return unless @kind == :document && stream.status == 200
          ahead = @account.ahead? && stream["set-cookie"].nil?
          Reading.of(stream, @address.url, budget: @account.budget, wanted: -> { !@left }) do |inlines, frames|
            page.frame(frames)
            fetch(inlines, stream["referrer-policy"]) if ahead && inlines.any? && !@wire.ending?
          end
        end

        def fetch(inlines, policy)
          @account.prefetcher.fetch(inlines, page: page, client: @client, origin: @address.origin, headers: @headers, credentials: @credentials, now: now,
            url: @address.url, policy: policy)
        end

        def given(answer)
          @account.given.give(@address, @headers, answer, credentials: @credentials) unless @headers.any? { |name, _| name == "range" }
        end
      end
    end
  end
end
