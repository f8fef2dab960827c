# frozen_string_literal: true

require "uri"
require_relative "../cache/validation"
require_relative "../errors"
require_relative "../response"
require_relative "origin_pool"
require_relative "retry_policy"
require_relative "route"
require_relative "stall_detector"
require_relative "stream"
require_relative "transaction"

module Hikyaku
  module HTTP
    class Client
      # Takes requests, and finds who answers them: the cache, a resource that is on its way already, or a server. It follows redirects, keeps cookies
      # where there is a jar, and tells the cache what came. All of it while the driver's lock is held.
      class Dispatcher
        OUT_OF_REACH = [ConnectFailed, ConnectionLost, TimedOut].freeze
        OUT_OF_ORDER = [500, 502, 503, 504].freeze
        private_constant :OUT_OF_REACH, :OUT_OF_ORDER

        attr_reader :servers

        def initialize(settings, driver, memory, clock:)
          @settings = settings
          @driver = driver
          @clock = clock
          @servers = Origins.new(settings, driver, memory, clock: clock)
          @caching = Caching.new(settings.cache, clock: clock)
          @cookies = Cookies.new(settings.cookies)
          @redirection = Redirection.new(settings.max_redirects)
          @shared = {}
          @resources = {}.compare_by_identity
          @numbers = @changes = 0
        end

        def submit(request, fetch)
          own_cookie = !request["cookie"].nil?
          request = @cookies.with(request)
          found = @caching.find(request)
          share = request.shared? && !fetch.is_a?(Stream)
          under_way = share ? @shared[request.key] : nil
          return join(under_way, fetch) if under_way && !found&.fresh?
          resource = Transaction.new(request, self, @settings, own_cookie: own_cookie)
          join(resource, fetch)
          @shared[request.key] ||= resource if share
          find_answer(resource, request, found)
        rescue RequestFailed => error
          resource ? failed(resource, error) : fetch.fail(error)
        rescue
          leave_all(resource) if resource
          raise
        end

        def leave(fetch)
          resource = @resources.delete(fetch) or return
          return unless resource.leave(fetch)
          forget(resource)
          changed(resource)
          resource.exchange&.cancel!
          connection_of(resource)&.resume
          @driver.nudge
        end

        def abandon(fetches)
          asked = fetches.select { |fetch| asked?(fetch) && (@resources[fetch].audience - fetches).empty? }
          asked.group_by { |fetch| @servers[@resources[fetch].request.address.origin] }.each do |server, all|
            gone = server.abandon(all.map { |fetch| @resources[fetch].exchange }, @driver.now)
            all.each { |fetch| fetch.cancel if gone.include?(@resources[fetch].exchange) }
          end
        end

        def asked?(fetch) = !@resources[fetch]&.exchange&.sent_at.nil?

        # Ends all that is under way.
        def close
          @servers.to_a.each do |server|
            server.give_up.each { |exchange| exchange.listener.failed(Canceled.new("the client was closed", url: exchange.request.address.url)) }
            server.close
          end
          @driver.wake
        end

        # What a resource tells.

        def answered(resource, status:, headers:, body:, seconds:)
          guard(resource) { take(resource, status, headers, body, seconds) }
        end

        # A redirect is followed before it is whole. What is left of it is of use to the cache alone.
        def led_elsewhere(resource, status, headers)
          guard(resource) do
            @cookies.keep(resource.request, headers)
            @caching.keep(resource, status, headers, nil) unless resource.request.safe?
            changed(resource, status, headers)
            redirect(resource, status, headers)
          end
          resource.left_at = @changes
          resource.exchange.led_elsewhere!
        end

        def again_in(resource, status, headers)
          return unless RetryAfter.possible?(resource.request, status)
          seconds = RetryAfter.wait(headers, before: resource.retries, most: @settings.max_retry_wait, wall: @clock.call) or return
          seconds if patient(resource, @driver.now + seconds).any?
        end

        def failed(resource, error)
          return if resource.left?
          changed(resource)
          return fall_back(resource) if resource.fallback && !resource.given? && OUT_OF_REACH.any? { |kind| error.is_a?(kind) }
          leave_all(resource).each { |fetch| fetch.fail(error) }
        end

        def connection_of(resource)
          exchange = resource.exchange or return
          @servers[resource.request.address.origin].connections.find { |connection| connection.unanswered.first.equal?(exchange) }
        end

        def step_aside(resource)
          connection = connection_of(resource) or return
          @servers[resource.request.address.origin].hold(connection)
        end

        def resume(resource)
          connection_of(resource)&.resume
          @driver.nudge
        end

        private

        def join(resource, fetch)
          resource.join(fetch)
          @resources[fetch] = resource
        end

        # In the cache, or from the server.
        def find_answer(resource, request, found)
          return give(resource, found.stored.response) if found&.fresh?
          return failed(resource, unsatisfiable(request)) if found&.unsatisfiable?
          start(resource, request, found)
        end

        # What was kept may lead elsewhere as well.
        def give(resource, response)
          return settle(resource, response) unless @settings.max_redirects.positive? && Redirection.elsewhere?(response.status, response.headers)
          redirect(resource, response.status, response.headers)
        end

        def start(resource, request, found)
          resource.requested_at = @clock.call
          resource.fallback = found&.fallback
          if found&.stale?
            resource.stored = found.stored
            asked = request.redirected(request.address, headers: request.headers + found.validators)
          end
          resource.exchange = Exchange.new(asked || request, resource, number: @numbers += 1)
          @servers[request.address.origin].enqueue(resource.exchange)
        end

        def take(resource, status, headers, body, seconds)
          return keep_left(resource, status, headers, body) if resource.left?
          @cookies.keep(resource.request, headers)
          return revalidated(resource, headers, seconds) if status == 304 && resource.stored
          return fall_back(resource) if resource.fallback && !resource.given? && OUT_OF_ORDER.include?(status)
          response = Response.new(status: status, headers: headers, body: body.freeze, url: resource.request.address.url, seconds: seconds, http_version: resource.http_version)
          return if resource.again_in && asked_later?(resource, response)
          @caching.keep(resource, status, headers, body)
          changed(resource, status, headers)
          return redirect(resource, status, headers) if resource.elsewhere?
          settle(resource, response)
        end

        # What changed meanwhile may be what it says.
        def keep_left(resource, status, headers, body)
          @caching.keep(resource, status, headers, body.freeze) if resource.request.safe? && resource.left_at == @changes
        end

        # Who does not wait, or not for so long, has what came.
        def asked_later?(resource, response)
          at = @driver.now + resource.again_in
          waiting = patient(resource, at)
          return false if waiting.empty?
          (resource.audience - waiting).each do |fetch|
            @resources.delete(fetch)
            resource.leave(fetch)
            give_to(fetch, response)
          end
          resource.requested_at = @clock.call + resource.again_in
          resource.begin_again
          resource.exchange = Exchange.new(resource.exchange.request, resource, number: @numbers += 1)
          @servers[resource.request.address.origin].postpone(resource.exchange, at)
          true
        end

        # Those who want it asked again, and wait as long.
        def patient(resource, at)
          resource.audience.select { |fetch| fetch.terms.retry?(resource.retries) && (fetch.deadline.nil? || fetch.deadline > at) }
        end

        def revalidated(resource, headers, seconds)
          stored = @caching.validated(resource, headers)
          return ask_plainly(resource) unless stored
          response = stored.response
          give(resource, Response.new(status: response.status, headers: response.headers, body: response.body, url: resource.request.address.url, seconds: seconds,
            from: :validated))
        end

        # RFC 5861, section 4: what is stale is better than nothing, where the server said so.
        def fall_back(resource)
          response = resource.fallback.response
          resource.fallback = nil
          give(resource, response)
        end

        # Of several that the server was asked about, it did not say which it means.
        def ask_plainly(resource)
          resource.restart
          resource.stored = nil
          start(resource, resource.request, nil)
        end

        def redirect(resource, status, headers)
          request = resource.request
          following = @redirection.follow(request, status, headers.assoc("location").last, before: resource.redirects, own_cookie: resource.own_cookie?)
          own_cookie = !following["cookie"].nil?
          following = @cookies.with(following)
          successor = Transaction.new(following, self, @settings, own_cookie: own_cookie, before: resource)
          successor.audience.each { |fetch| @resources[fetch] = successor }
          @shared[successor.key] = successor if @shared[resource.key].equal?(resource)
          guard(successor) { find_answer(successor, following, @caching.find(following)) }
        end

        # What goes wrong here is of this request alone: whoever drives may be waiting for another.
        def guard(resource)
          yield
        rescue RequestFailed => error
          failed(resource, error)
        rescue => error
          failed(resource, failure(resource, error))
        end

        # What is under way may be from before the change: who asks from now on asks anew, and it is not stored. A request that failed may have changed
        # something as well.
        def changed(resource, status = nil, headers = nil)
          request = resource.request
          return if request.safe?
          @changes += 1
          url = request.address.url
          gone = [url]
          gone |= Cache::Invalidation.urls(method: request.method, url: url, status: status, headers: headers) if status
          @resources.each_value do |other|
            next if !other.request.safe? || (other.urls & gone).empty?
            forget(other)
            other.outdate if gone.include?(other.urls.last)
          end
        end

        def settle(resource, response)
          leave_all(resource).each { |fetch| give_to(fetch, response) }
        end

        def give_to(fetch, response)
          error = fetch.terms.objection(response)
          error ? fetch.fail(error) : fetch.complete(response)
        end

        def leave_all(resource)
          forget(resource)
          resource.audience.each { |fetch| @resources.delete(fetch) }
        end

        def forget(resource)
          @shared.delete(resource.key) if @shared[resource.key].equal?(resource)
        end

        def failure(resource, error)
          url = resource.request.address.url
          RequestFailed.caused("what came for #{url} could not be used: #{error.message} (#{error.class})", url: url)
        end

        def unsatisfiable(request)
          RequestFailed.new("#{request.address.url} is not in the cache, and only-if-cached was asked for", url: request.address.url)
        end
      end

      # The servers that were asked: not more than a client needs to know at a time.
      class Origins
        MOST = 500
        private_constant :MOST

        def initialize(settings, driver, memory, clock:, most: MOST)
          @settings = settings
          @driver = driver
          @memory = memory
          @clock = clock
          @most = most
          @line = AccessLink.new
          @servers = {}
        end

        def [](origin) = @servers[origin] || add(origin)

        def to_a = @servers.values

        def size = @servers.size

        private

        def add(origin)
          route = Route.to(origin, proxy: @settings.proxy, unix_socket: @settings.unix_socket)
          shed if @servers.size >= @most
          server = OriginPool.new(route, @settings, memory: @memory, wake: @driver.method(:wake), clock: @clock, line: @line)
          @driver.servers << server
          @servers[origin] = server
        end

        # The one that was idle for longest.
        def shed
          origin, server = @servers.select { |_, one| one.idle? }.min_by { |_, one| one.used_at }
          return unless server
          server.close
          @servers.delete(origin)
          @driver.servers.delete(server)
        end
      end

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

      # A jar of cookies, where the caller has one: what it has for a request, and what an answer puts into it.
      class Cookies
        # What stands in the paths and queries of browsers' URLs, and in none of RFC 3986; a jar takes no other URLs.
        UNUSUAL = /[^!$&'()*+,\-.\/0-9:;=?@A-Z_a-z~%]|%(?!\h\h)/n
        private_constant :UNUSUAL

        def initialize(jar)
          @jar = jar
        end

        def with(request)
          return request if @jar.nil? || request["cookie"]
          asked(request.address) do |uri|
            cookies = @jar.cookies(uri)
            next request if cookies.empty?
            request.redirected(request.address, headers: [*request.headers, ["cookie", cookies.map(&:cookie_value).join("; ")]], body: request.body)
          end
        end

        def keep(request, headers)
          return if @jar.nil?
          set = headers.filter_map { |name, value| value if name == "set-cookie" }
          return if set.empty?
          asked(request.address) { |uri| set.each { |value| @jar.parse(value, uri) } }
        end

        private

        # What is said about a cookie may be secret.
        def asked(address)
          yield URI("#{address.origin}#{address.target.b.gsub(UNUSUAL) { |byte| format("%%%02X", byte.ord) }}")
        rescue => error
          raise RequestFailed.new("the jar of cookies failed at #{address.url} (#{error.class})", url: address.url)
        end
      end
    end
  end
end
