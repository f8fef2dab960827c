# frozen_string_literal: true

require_relative "../address"
require_relative "../response"
require_relative "fetch"
require_relative "resource_manager"
require_relative "route"
require_relative "server_manager"
require_relative "stream"

module Hikyaku
  module HTTP
    class Client
      # Takes requests, and finds who answers them: the cache, a resource that is on its way already, or a server. It follows redirects, keeps cookies
      # where there is a jar, and tells the cache what came. All of it while the driver's lock is held.
      class RequestManager
        # RFC 9110, section 15.4: after these a POST becomes a GET.
        BECOMES_GET = [301, 302].freeze
        # What is meant for one origin is not told to another.
        CONFIDENTIAL = %w[authorization cookie proxy-authorization].freeze
        OF_A_BODY = %w[content-type content-encoding content-language content-location].freeze
        MOST_SERVERS = 500
        OUT_OF_REACH = [ConnectFailed, ConnectionLost, TimedOut].freeze
        OUT_OF_ORDER = [500, 502, 503, 504].freeze
        private_constant :OUT_OF_REACH, :OUT_OF_ORDER
        private_constant :BECOMES_GET, :CONFIDENTIAL, :OF_A_BODY, :MOST_SERVERS

        # @param settings [Settings]
        # @param driver [Driver]
        # @param memory [Memory]
        # @param clock [#call] seconds of the wall clock
        def initialize(settings, driver, memory, clock:)
          @settings = settings
          @driver = driver
          @memory = memory
          @clock = clock
          @servers = {}
          @shared = {}
          @resources = {}.compare_by_identity
          @numbers = 0
        end

        # @param request [Request]
        # @param fetch [Fetch]
        # @return [void]
        def submit(request, fetch)
          request = with_cookies(request)
          found = find(request)
          return fetch.complete(found.stored.response) if found&.fresh?
          return fetch.fail(unsatisfiable(request)) if found&.unsatisfiable?
          share = request.shared? && !fetch.is_a?(Stream)
          resource = share ? (@shared[request.key] ||= ResourceManager.new(request, self, @settings)) : ResourceManager.new(request, self, @settings)
          is_new = resource.audience.empty?
          resource.join(fetch)
          @resources[fetch] = resource
          start(resource, request, found) if is_new
        end

        # @param fetch [Fetch] that nobody wants any more
        # @return [void]
        def leave(fetch)
          resource = @resources.delete(fetch) or return
          return unless resource.leave(fetch)
          forget(resource)
          resource.exchange&.cancel!
          connection_of(resource)&.resume
          @driver.nudge
        end

        # @param origin [Origin]
        # @return [ServerManager]
        def server(origin)
          @servers[origin] ||= begin
            shed if @servers.size >= MOST_SERVERS
            ServerManager.new(Route.to(origin, proxy: @settings.proxy), @settings, memory: @memory, wake: @driver.method(:wake), clock: @clock).tap do |server|
              @driver.servers << server
            end
          end
        end

        # @return [Array<ServerManager>]
        def servers = @servers.values

        # Ends all that is under way.
        #
        # @return [void]
        def close
          @servers.each_value do |server|
            server.give_up.each { |exchange| exchange.listener.failed(Canceled.new("the client was closed", url: exchange.request.address.url)) }
            server.close
          end
          @driver.wake
        end

        # What a resource tells.

        # @api private
        def answered(resource, status:, headers:, body:, seconds:)
          keep_cookies(resource.request, headers)
          return revalidated(resource, headers, seconds) if status == 304 && resource.stored
          return fall_back(resource) if resource.fallback && !resource.given? && OUT_OF_ORDER.include?(status)
          keep(resource, status, headers, body)
          return redirect(resource, status, headers) if resource.elsewhere?
          settle(resource, Response.new(status: status, headers: headers, body: body.freeze, url: resource.request.address.url, seconds: seconds))
        end

        # @api private
        def failed(resource, error)
          return fall_back(resource) if resource.fallback && !resource.given? && OUT_OF_REACH.any? { |kind| error.is_a?(kind) }
          forget(resource)
          resource.audience.each { |fetch| @resources.delete(fetch) }
          resource.audience.each { |fetch| fetch.fail(error) }
        end

        # @api private
        def connection_of(resource)
          exchange = resource.exchange or return
          server(resource.request.address.origin).connections.find { |connection| connection.unanswered.first.equal?(exchange) }
        end

        # @api private
        def resume(resource)
          connection_of(resource)&.resume
          @driver.nudge
        end

        private

        def find(request)
          return unless @settings.cache && request.safe? && request.body.nil?
          @settings.cache.find(method: request.method, url: request.address.url, headers: request.headers, now: @clock.call)
        end

        def start(resource, request, found)
          resource.requested_at = @clock.call
          resource.fallback = found&.fallback
          if found&.stale?
            resource.stored = found.stored
            asked = request.redirected(request.address, headers: request.headers + found.validators)
          end
          resource.exchange = Exchange.new(asked || request, resource, number: @numbers += 1)
          server(request.address.origin).enqueue(resource.exchange)
        end

        def revalidated(resource, headers, seconds)
          stored = @settings.cache.validated(resource.stored, headers: headers, requested_at: resource.requested_at, received_at: @clock.call)
          return ask_plainly(resource) unless stored
          response = stored.response
          settle(resource, Response.new(status: response.status, headers: response.headers, body: response.body, url: resource.request.address.url, seconds: seconds,
            from: :validated))
        end

        # RFC 5861, section 4: what is stale is better than nothing, where the server said so.
        def fall_back(resource)
          response = resource.fallback.response
          resource.fallback = nil
          settle(resource, response)
        end

        # Of several that the server was asked about, it did not say which it means.
        def ask_plainly(resource)
          resource.restart
          resource.stored = nil
          start(resource, resource.request, nil)
        end

        def keep(resource, status, headers, body)
          cache = @settings.cache or return
          request = resource.request
          url = request.address.url
          return cache.invalidate(method: request.method, url: url, status: status, headers: headers) unless request.safe?
          return if !resource.whole? || !request.body.nil?
          cache.store(method: request.method, url: url, request_headers: request.headers, status: status, headers: headers, body: body,
            requested_at: resource.requested_at, received_at: @clock.call)
        end

        def settle(resource, response)
          forget(resource)
          resource.audience.each do |fetch|
            @resources.delete(fetch)
            fetch.complete(response)
          end
        end

        def forget(resource)
          @shared.delete(resource.key) if @shared[resource.key].equal?(resource)
        end

        def redirect(resource, status, headers)
          request = resource.request
          address = Address.parse(headers.assoc("location").last.dup.force_encoding(Encoding::UTF_8), base: request.address)
          refuse(request, "more than #{@settings.max_redirects} redirects") if resource.redirects >= @settings.max_redirects
          refuse(request, "a redirect from https to #{address.url}, where everybody reads along") if request.address.origin.tls? && !address.origin.tls?
          following = with_cookies(followed(request, status, address))
          resource.move(following)
          found = find(following)
          return settle(resource, found.stored.response) if found&.fresh?
          start(resource, following, found)
        rescue InvalidURL => error
          failed(resource, BadRedirect.new("#{request.address.url} redirects to what is no URL: #{error.message}", url: request.address.url))
        rescue BadRedirect => error
          failed(resource, error)
        end

        def refuse(request, why) = raise(BadRedirect.new("#{request.address.url} leads to #{why}", url: request.address.url))

        def followed(request, status, address)
          headers = request.headers.reject { |name, _| name == "host" || name == "cookie" }
          headers = headers.reject { |field| CONFIDENTIAL.include?(field.first) } unless address.origin == request.address.origin
          if (status == 303 && request.method != "HEAD") || (BECOMES_GET.include?(status) && request.method == "POST")
            return request.redirected(address, method: "GET", headers: headers.reject { |field| OF_A_BODY.include?(field.first) })
          end
          refuse(request, "a redirect with a body that was read already") if request.once?
          request.redirected(address, headers: headers, body: request.body)
        end

        def with_cookies(request)
          jar = @settings.cookies or return request
          cookies = jar.cookies(URI(request.address.url))
          return request if cookies.empty? || request["cookie"]
          request.redirected(request.address, headers: [*request.headers, ["cookie", cookies.map(&:cookie_value).join("; ")]], body: request.body)
        end

        def keep_cookies(request, headers)
          jar = @settings.cookies or return
          headers.each { |name, value| jar.parse(value, URI(request.address.url)) if name == "set-cookie" }
        end

        # The one that was idle for longest.
        def shed
          origin, server = @servers.find { |_, one| one.idle? }
          return unless server
          server.close
          @servers.delete(origin)
          @driver.servers.delete(server)
        end

        def unsatisfiable(request)
          RequestFailed.new("#{request.address.url} is not in the cache, and only-if-cached was asked for", url: request.address.url)
        end
      end
    end
  end
end
