# frozen_string_literal: true

module Hikyaku
  module HTTP
    class Client
      # What the cache is asked and told, where there is one.
      class Caching
        def initialize(cache, clock:)
          @cache = cache
          @clock = clock
        end

        def find(request)
          return unless concerned?(request) && request.safe? && request.body.nil?
          @cache.find(method: request.method, url: request.address.url, headers: request.headers, now: @clock.call)
        end

        def keep(resource, status, headers, body)
          request = resource.request
          return unless concerned?(request)
          url = request.address.url
          return @cache.invalidate(method: request.method, url: url, status: status, headers: headers) unless request.safe?
          return if resource.outdated? || !resource.whole? || !request.body.nil?
          @cache.store(method: request.method, url: url, request_headers: request.headers, status: status, headers: headers, body: body,
            requested_at: resource.requested_at, received_at: @clock.call)
        end

        # The server says that what is stored is still right.
        def validated(resource, headers)
          @cache.validated(resource.stored, headers: headers, requested_at: resource.requested_at, received_at: @clock.call)
        end

        private

        # Who is asked by another name than the URL's may answer otherwise.
        def concerned?(request)
          return false if @cache.nil?
          host = request["host"]
          host.nil? || host.casecmp?(request.address.origin.authority)
        end
      end
    end
  end
end
