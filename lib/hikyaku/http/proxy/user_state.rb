# frozen_string_literal: true

require "openssl"
require "securerandom"
require_relative "../address"
require_relative "../cache/validation"
require_relative "browser_cache"
require_relative "client_pool"
require_relative "page_log"
require_relative "page_reader"
require_relative "prefetcher"
require_relative "status_page"

module Hikyaku
  module HTTP
    class Proxy
      # The state of one user of the proxy: clients with their caches, prefetched responses, the log of pages, and the switch. A proxy without authentication has
      # one user.
      class UserState
        # The budget for parsing the user's pages refills within PERIOD seconds, which is a fifth of a processor.
        BUDGET_SECONDS = 3.0
        BUDGET_BYTES = 33_554_432
        PERIOD = 15.0
        private_constant :BUDGET_SECONDS, :BUDGET_BYTES, :PERIOD

        attr_reader :prefetcher, :budget, :browser_cache, :page_log

        def initialize(user, memory:, header_filter:, prefetch:, **options)
          @user = user
          @prefetch = prefetch
          @pools = {true => ClientPool.new(memory, pipelining: true, **options), false => ClientPool.new(memory, pipelining: false, cached: false, **options)}
          @browser_cache = BrowserCache.new
          @prefetcher = Prefetcher.new(header_filter, browser_cache: @browser_cache)
          @budget = PageReader::Budget.new(seconds: BUDGET_SECONDS, bytes: BUDGET_BYTES, period: PERIOD)
          @page_log = PageLog.new
          @token = SecureRandom.urlsafe_base64(16)
          @lock = Mutex.new
          @connections = 0
        end

        def prefetch? = @prefetch

        def clients = @pools.fetch(@prefetch)

        # Closes idle connections to servers.
        def close_idle = @pools.each_value(&:close_idle)

        def credentials(headers) = ClientPool.credentials(@user, headers)

        def connected = @lock.synchronize { @connections += 1 }

        # With the last connection the browser is gone.
        def disconnected
          @prefetcher.leave if @lock.synchronize { @connections -= 1 }.zero?
        end

        # Invalidates stored responses after a request that may have changed something, for all credentials. RFC 9111, section 4.4.
        def invalidate(upstream, response)
          answer = {method: upstream.method, url: upstream.address.url, status: response.status, headers: response.fields}
          urls = Cache::Invalidation.urls(**answer)
          return if urls.empty?
          @pools.each_value { |clients| clients.invalidate(**answer) }
          @prefetcher.drop(urls)
          @browser_cache.drop(urls)
        rescue InvalidURL
          nil # no response is stored for such a URL
        end

        def status_page = StatusPage.new(@page_log, explanations: clients.explanations, prefetch: @prefetch, token: @token).to_s.b

        # Switches prefetching and pipelining on or off, if the token is that of the status page.
        def switch(token)
          return false unless OpenSSL.secure_compare(token, @token)
          @prefetcher.close
          @prefetch = !@prefetch
          true
        end

        def close
          @prefetcher.close
          @pools.each_value(&:close)
        end

        def inspect = "#<#{self.class}>"
      end
    end
  end
end
