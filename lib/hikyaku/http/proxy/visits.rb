# frozen_string_literal: true

module Hikyaku
  module HTTP
    class Proxy
      # What was asked for lately, page by page, for the proxy's own page: when it was asked for, when it came, and by which way. In memory, bounded, without
      # queries, which may be secret.
      class Visits
        MOST_PAGES = 20
        MOST_RESOURCES = 500
        MOST_FRAMES = 100
        private_constant :MOST_PAGES, :MOST_RESOURCES, :MOST_FRAMES

        # One resource of a page. Times are seconds since the page was asked for; `wanted_at` is when the browser asked, nil while it has not.
        Resource = Struct.new(:page, :url, :kind, :way, :began_at, :wanted_at, :ended_at, :status, :bytes, keyword_init: true) do
          # The browser asks.
          def wanted(now) = self.wanted_at ||= page.since(now)

          # It is whole, or came to nothing.
          def finish(status, bytes, now)
            self.status = status
            self.bytes = bytes
            self.ended_at = page.since(now)
          end

          # It came from the cache.
          def cached = self.way = :cache

          def had_at
            [wanted_at, ended_at].max if wanted_at && ended_at
          end
        end

        # One page, and what belongs to it.
        class Page
          attr_reader :url
          attr_reader :ahead
          attr_reader :at
          attr_reader :resources

          attr_accessor :left
          alias_method :left?, :left

          def initialize(url, ahead:, now:)
            @url = Visits.shown(url)
            @ahead = ahead
            @at = Time.now
            @began = now
            @resources = []
            @frames = {}
            @left = false
          end

          def frame(urls) = urls.first([MOST_FRAMES - @frames.size, 0].max).each { |url| @frames[url] = true }

          def frame?(url) = @frames.key?(url)

          def since(now) = now - @began

          def seconds = @resources.filter_map(&:had_at).max || 0.0

          def all_seconds = @resources.flat_map { |resource| [resource.ended_at, resource.wanted_at, resource.began_at] }.compact.max || 0.0

          def add(url, kind, way, now, wanted: true)
            time = since(now)
            resource = Resource.new(page: self, url: Visits.shown(url), kind: kind, way: way, began_at: time, wanted_at: (time if wanted))
            @resources << resource if @resources.size < MOST_RESOURCES
            resource
          end
        end

        def self.shown(url) = url.dup.force_encoding(Encoding::UTF_8).scrub.sub(/\?.*/m, "?…")

        def initialize
          @lock = Mutex.new
          @pages = []
        end

        def begin(url, ahead:, now:)
          page = Page.new(url, ahead: ahead, now: now)
          @lock.synchronize do
            @pages << page
            @pages.shift if @pages.size > MOST_PAGES
          end
          page
        end

        def of(referer)
          wanted = Visits.shown(referer.to_s)
          @lock.synchronize { @pages.reverse_each.find { |page| page.url == wanted } || @pages.last }
        end

        def named(referer)
          return unless referer
          wanted = Visits.shown(referer)
          @lock.synchronize { @pages.reverse_each.find { |page| page.url == wanted } }
        end

        def newest = @lock.synchronize { @pages.last }

        def framing(url, referer) = referer && of(referer)&.then { |page| page if page.frame?(url) }

        def pages = @lock.synchronize { @pages.reverse }
      end
    end
  end
end
