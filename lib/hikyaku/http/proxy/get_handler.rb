# frozen_string_literal: true

require_relative "../../support/clock"
require_relative "browser_cache"
require_relative "browser_connection"
require_relative "errors"
require_relative "forwarding"
require_relative "header_filter"
require_relative "page_reader"

module Hikyaku
  module HTTP
    class Proxy
      # Answers one GET of a browser with a prefetched response, or else through the client, as it comes. It scans a page as it passes, and prefetches its resources.
      class GetHandler
        include Support::Clock

        # The browser has this response, and the proxy reads the rest of it, up to this limit, only for its own cache.
        MAX_UNSENT = 65_536
        private_constant :MAX_UNSENT

        def initialize(proxy, browser, request, upstream, user_state)
          @proxy = proxy
          @browser = browser
          @request = request
          @user_state = user_state
          @via = upstream.via
          @address = upstream.address
          @headers = upstream.headers
          @credentials = @cache_credentials = user_state.credentials(@headers)
          @kind = HeaderFilter.kind(@address, @headers)
          @started = @framed = @left = @mistaken = false
        end

        # Whether another request may follow on the connection; :event_stream, if the response is one and needs a connection of its own.
        def run
          page? ? open_page : request_part
          @user_state.prefetcher.learn_accept(@kind, @headers)
          prefetch = @user_state.prefetcher.take(@address, headers: @headers, credentials: @credentials, now: now) if @user_state.prefetch?
          @user_state.clients.use(@credentials, @address.origin) do |client|
            @client = client
            @user_state.prefetcher.fetch_skipped(client: client, credentials: @credentials, now: now) if @mistaken
            @proxy.monitor.watch(@browser, method(:disconnected)) do
              answered = prefetch && answer_with(prefetch)
              answered.nil? ? request : answered
            end
          end
        rescue BrowserConnection::Disconnected
          leave_page
          raise
        end

        private

        def page? = @kind == :document

        def disconnected
          @left = true
          leave_page unless page?
          [@client, @stream] if @stream
        end

        # A browser that breaks off a part of a page may have left the page, or may no longer want that part. The request for another page, before or after, decides.
        def leave_page
          return @framed || @user_state.prefetcher.leave(@page) if @page
          page = referring_page or return
          page.left = true
          @user_state.prefetcher.leave(page) unless page.equal?(@user_state.page_log.latest)
        end

        # The document of a frame is a part of its page. The Referer tells which page the browser has left: another window leaves none.
        def open_page
          @user_state.browser_cache.open_page(@address.origin, @headers)
          framed = HeaderFilter.frame?(@headers)
          @page = @user_state.page_log.framing(@address.url, @request["referer"]) || (referring_page if framed)
          @framed = !@page.nil? || framed
          @user_state.prefetcher.open_page(@credentials, to: @address.url, from: @request["referer"]) unless @framed
        end

        def request_part
          referring_page&.left = false
          @user_state.prefetcher.requested(@address.url)
          @mistaken = @user_state.browser_cache.requested(@address, @headers) && @user_state.prefetch?
        end

        # Nil, if the prefetched response does not answer the request: then the browser has nothing of it.
        def answer_with(prefetch)
          prefetch.entry.requested(now)
          stream = @stream = prefetch.response
          return if stream.status == 407 # see {Forwarding.check_status}
          return if prefetch.shortened? && HeaderFilter.refused?(stream.status)
          unless prefetch.suits?(@headers, stream)
            @user_state.prefetcher.drop_like(prefetch) unless prefetch.same_identity?(@headers) || BrowserCache.shareable?(stream)
            return
          end
          @cache_credentials = @user_state.credentials(prefetch.headers)
          return send_not_modified(stream) if not_modified?(stream)
          stream.done? ? send_whole(stream.status, stream, stream.read) : send_stream(stream)
        rescue RequestFailed
          raise BrowserConnection::Disconnected if @left
          @cache_credentials = @credentials
          nil
        ensure
          stream&.close
        end

        def send_not_modified(stream)
          continue = send_whole(304, stream, "")
          left = MAX_UNSENT
          stream.each { |piece| break if (left -= piece.bytesize).negative? }
          continue
        rescue RequestFailed
          continue
        end

        # RFC 9110, section 13.1.2.
        def not_modified?(response)
          condition = @headers.assoc("if-none-match")&.last or return false
          tag = response["etag"] or return false
          response.status == 200 && (condition.strip == "*" || condition.scan(/(?:W\/)?"[^"]*"/).any? { |each| each.delete_prefix("W/") == tag.delete_prefix("W/") })
        end

        def send_whole(status, response, body)
          downstream = downstream(status, response, content: body)
          @browser.write(downstream.head + downstream.content)
          stored(response)
          !downstream.close?
        end

        def downstream(status, response, **framing)
          Forwarding::DownstreamResponse.new(status, response.headers, @request, via: @via, minor: response.http_version[-1], last: @browser.shutting_down?, **framing)
        end

        # A request without fields on which the response depends is repeated with them.
        def request
          sent = @proxy.header_filter.call(@address.origin, @kind, @headers)
          result = request_with(sent) { |stream| (sent.size < @headers.size) ? lacking(stream, sent) : nil }
          result.is_a?(Array) ? request_with(result) : result
        end

        def request_with(sent)
          entry = (page? ? page : page_of_referer)&.add(@address.url, @kind, :pipeline, now)
          @client.open(@address, headers: sent, alone: false, priority: page? ? 0 : nil) do |stream|
            @stream = stream
            stream.each_interim { |response| send_interim(response) }
            Forwarding.check_status(stream.status)
            more = yield stream if block_given?
            next more if more
            learn(stream)
            next :event_stream if Forwarding.event_stream?([stream["content-type"].to_s])
            entry&.cached if stream.cached?
            send_stream(stream, entry)
          end
        ensure
          entry.finish(nil, 0, now) if entry && entry.ended_at.nil?
        end

        # RFC 9110, section 15.2.
        def send_interim(response)
          bytes = Forwarding.interim(response, @request, via: @via)
          @browser.write(bytes) if bytes
        end

        # The fields for a second request, or nil.
        def lacking(stream, sent)
          if HeaderFilter.refused?(stream.status)
            @proxy.header_filter.send_all(@address.origin, @kind)
            return @headers
          end
          names = HeaderFilter.decisive_vary(stream, @kind, @headers)
          return unless HeaderFilter.omitted?(names, @headers, sent)
          learn(stream)
          names.include?("*") ? @headers : @headers.select { |field| sent.include?(field) || names.include?(field.first) }
        end

        def learn(response)
          @proxy.header_filter.learn(@address.origin, @kind, response)
          @user_state.prefetcher.observe(@address.origin, @kind, response)
        end

        def page = @page ||= @user_state.page_log.open(@address.url, prefetch: @user_state.prefetch?, now: now)

        def referring_page = @user_state.page_log.find(@request["referer"])

        def page_of_referer = @user_state.page_log.of(@request["referer"])

        # After the head, the proxy can report an error only by closing the connection.
        def send_stream(stream, entry = nil)
          downstream = downstream(stream.status, stream, length: stream["content-length"]&.to_i)
          reader = page_reader(stream)
          @browser.write(downstream.head)
          @started = true
          bytes = 0
          stream.each do |piece|
            bytes += piece.bytesize
            reader << piece if reader
            @browser.write(downstream.body(piece))
          end
          @browser.write(downstream.finish)
          stored(stream)
          entry&.finish(stream.status, bytes, now)
          !downstream.close?
        rescue RequestFailed
          raise unless @started
          raise BrowserConnection::Disconnected
        end

        # With a new cookie, the browser's next requests differ from those that the proxy could send now.
        def page_reader(stream)
          return unless page? && stream.status == 200
          prefetch = @user_state.prefetch? && stream["set-cookie"].nil?
          PageReader.of(stream, @address.url, budget: @user_state.budget, wanted: -> { !@left }) do |subresources, frames|
            page.add_frames(frames)
            fetch(subresources, stream["referrer-policy"]) if prefetch && subresources.any? && !@browser.shutting_down?
          end
        end

        def fetch(subresources, policy)
          @user_state.prefetcher.fetch(subresources, page: page, client: @client, origin: @address.origin, headers: @headers, credentials: @credentials, now: now,
            url: @address.url, policy: policy)
        end

        def stored(response)
          @user_state.browser_cache.store(@address, @headers, response, credentials: @cache_credentials) unless @headers.any? { |name, _| name == "range" }
        end
      end
    end
  end
end
