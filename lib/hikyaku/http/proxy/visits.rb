# frozen_string_literal: true

module Hikyaku
  module HTTP
    class Proxy
      # What was asked for lately, page by page, for the proxy's own page: when it was asked for, when it came, and by which way. In memory, bounded, without
      # queries, which may be secret.
      class Visits
        MOST_PAGES = 20
        MOST_RESOURCES = 500
        private_constant :MOST_PAGES, :MOST_RESOURCES

        # One resource of a page. Times are seconds since the page was asked for; `wanted_at` is when the browser asked, nil while it has not.
        Resource = Struct.new(:page, :url, :kind, :way, :began_at, :wanted_at, :ended_at, :status, :bytes, keyword_init: true) do
          # The browser asks.
          #
          # @return [void]
          def wanted(now) = self.wanted_at ||= page.since(now)

          # It is whole.
          #
          # @return [void]
          def finish(status, bytes, now)
            self.status = status
            self.bytes = bytes
            self.ended_at = page.since(now)
          end
        end

        # One page, and what belongs to it.
        class Page
          # @return [String] without its query
          attr_reader :url
          # @return [Boolean] whether inline resources were fetched before the browser asked
          attr_reader :ahead
          # @return [Time]
          attr_reader :at
          # @return [Array<Resource>]
          attr_reader :resources

          # @param url [String]
          # @param ahead [Boolean]
          # @param now [Float] seconds of the monotonic clock
          def initialize(url, ahead:, now:)
            @url = Visits.shown(url)
            @ahead = ahead
            @at = Time.now
            @began = now
            @resources = []
          end

          # @return [Float] seconds
          def since(now) = now - @began

          # @return [Float] seconds from the page's request to its last byte
          def seconds = @resources.filter_map(&:ended_at).max || 0.0

          # @return [Resource]
          def add(url, kind, way, now, wanted: true)
            time = since(now)
            resource = Resource.new(page: self, url: Visits.shown(url), kind: kind, way: way, began_at: time, wanted_at: (time if wanted))
            @resources << resource if @resources.size < MOST_RESOURCES
            resource
          end
        end

        # @param url [String] of any bytes
        # @return [String] without its query
        def self.shown(url) = url.dup.force_encoding(Encoding::UTF_8).scrub.sub(/\?.*/m, "?…")

        def initialize
          @lock = Mutex.new
          @pages = []
        end

        # @return [Page] the newest
        def begin(url, ahead:, now:)
          page = Page.new(url, ahead: ahead, now: now)
          @lock.synchronize do
            @pages << page
            @pages.shift if @pages.size > MOST_PAGES
          end
          page
        end

        # @param referer [String, nil]
        # @return [Page, nil] the one that a request belongs to
        def of(referer)
          wanted = Visits.shown(referer.to_s)
          @lock.synchronize { @pages.reverse_each.find { |page| page.url == wanted } || @pages.last }
        end

        # @return [Array<Page>] newest first
        def pages = @lock.synchronize { @pages.reverse }
      end
    end
  end
end
