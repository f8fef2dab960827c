# frozen_string_literal: true

module Hikyaku
  module HTTP
    class Proxy
      # The latest pages and their resources: when the browser requested them, and how and when they came. It is bounded, and has no queries, which may be secret.
      class PageLog
        MAX_PAGES = 20
        MAX_RESOURCES = 500
        MAX_FRAMES = 100
        private_constant :MAX_PAGES, :MAX_RESOURCES, :MAX_FRAMES

        # A resource of a page. Times are seconds since the request for the page. `started_at` is when the proxy requested it, `requested_at` is when the browser did.
        Resource = Struct.new(:page, :url, :kind, :source, :started_at, :requested_at, :ended_at, :status, :bytes, keyword_init: true) do
          # The browser requests it.
          def requested(now) = self.requested_at ||= page.since(now)

          # It is complete, or, without a status, failed.
          def finish(status, bytes, now)
            self.status = status
            self.bytes = bytes
            self.ended_at = page.since(now)
          end

          def cached = self.source = :cache

          # When the browser had it.
          def available_at
            [requested_at, ended_at].max if requested_at && ended_at
          end
        end

        # A page and its resources.
        class Page
          attr_reader :url, :prefetch, :at, :resources

          # Whether the browser has left the page.
          attr_accessor :left
          alias_method :left?, :left

          def initialize(url, prefetch:, now:)
            @url = PageLog.without_query(url)
            @prefetch = prefetch
            @at = Time.now
            @started = now
            @resources = []
            @frames = {}
            @left = false
          end

          def add_frames(urls) = urls.first([MAX_FRAMES - @frames.size, 0].max).each { |url| @frames[url] = true }

          def frame?(url) = @frames.key?(url)

          def since(now) = now - @started

          # Until the browser had all that it requested.
          def seconds = @resources.filter_map(&:available_at).max || 0.0

          # Until the last event.
          def total_seconds = @resources.flat_map { |resource| [resource.ended_at, resource.requested_at, resource.started_at] }.compact.max || 0.0

          def add(url, kind, source, now, requested: true)
            time = since(now)
            resource = Resource.new(page: self, url: PageLog.without_query(url), kind: kind, source: source, started_at: time, requested_at: (time if requested))
            @resources << resource if @resources.size < MAX_RESOURCES
            resource
          end
        end

        def self.without_query(url) = url.dup.force_encoding(Encoding::UTF_8).scrub.sub(/\?.*/m, "?…")

        def initialize
          @lock = Mutex.new
          @pages = []
        end

        def open(url, prefetch:, now:)
          page = Page.new(url, prefetch: prefetch, now: now)
          @lock.synchronize do
            @pages << page
            @pages.shift if @pages.size > MAX_PAGES
          end
          page
        end

        # The page that a Referer names.
        def find(referer)
          return unless referer
          url = PageLog.without_query(referer)
          @lock.synchronize { @pages.reverse_each.find { |page| page.url == url } }
        end

        # The page that a Referer names, or else the latest.
        def of(referer) = find(referer) || latest

        def latest = @lock.synchronize { @pages.last }

        # The page with a frame of this URL.
        def framing(url, referer) = referer && of(referer)&.then { |page| page if page.frame?(url) }

        # The latest page first.
        def pages = @lock.synchronize { @pages.reverse }
      end
    end
  end
end
