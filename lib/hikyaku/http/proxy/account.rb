# frozen_string_literal: true

require "openssl"
require "securerandom"
require_relative "../address"
require_relative "../cache/invalidation"
require_relative "budget"
require_relative "clients"
require_relative "given"
require_relative "prefetcher"
require_relative "report"
require_relative "visits"

module Hikyaku
  module HTTP
    class Proxy
      # What each user of the proxy has for themselves: clients with their caches, what was fetched ahead for them, what they asked for lately, and the
      # switch. Where nobody says who they are, all are one user.
      class Account
        # What reading the user's pages may cost: all of it at once, and then a fifth of a processor.
        MOST_SECONDS = 3.0
        MOST_BYTES = 33_554_432
        PERIOD = 15.0
        private_constant :MOST_SECONDS, :MOST_BYTES, :PERIOD

        attr_reader :prefetcher
        attr_reader :budget
        attr_reader :given
        attr_reader :visits

        def initialize(user, memory:, fields:, ahead:, **options)
          @user = user
          @ahead = ahead
          @pools = {true => Clients.new(memory, pipelining: true, **options), false => Clients.new(memory, pipelining: false, cached: false, **options)}
          @given = Given.new
          @prefetcher = Prefetcher.new(fields, given: @given)
          @budget = Budget.new(seconds: MOST_SECONDS, bytes: MOST_BYTES, period: PERIOD)
          @visits = Visits.new
          @token = SecureRandom.urlsafe_base64(16)
          @lock = Mutex.new
          @conversations = 0
        end

        def ahead? = @ahead

        def clients = @pools.fetch(@ahead)

        # Closes connections to servers on which nothing is under way.
        def rest = @pools.each_value(&:rest)

        def credentials(headers) = Clients.credentials(@user, headers)

        # A connection is the user's.
        def come = @lock.synchronize { @conversations += 1 }

        # It has ended. With the last one the browser is gone.
        def go
          @prefetcher.leave if @lock.synchronize { @conversations -= 1 }.zero?
        end

        # A request that may have changed something was answered: what is known of it, and of what the answer names, is known no more, whatever
        # credentials it came with. RFC 9111, section 4.4.
        def changed(method, authority, target, response)
          answer = {method: method, url: Address.exact(authority.to_s, target).url, status: response.status, headers: response.fields}
          gone = Cache::Invalidation.urls(**answer)
          return if gone.empty?
          @pools.each_value { |clients| clients.invalidate(**answer) }
          @prefetcher.drop(gone)
          @given.drop(gone)
        rescue InvalidURL
          nil # nothing is kept of such
        end

        def report = Report.new(@visits, explanations: clients.explanations, ahead: @ahead, token: @token).to_s.b

        def switch(token)
          return false unless OpenSSL.secure_compare(token, @token)
          @prefetcher.close
          @ahead = !@ahead
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
