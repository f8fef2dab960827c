# frozen_string_literal: true

require_relative "../errors"
require_relative "../failure"
require_relative "settings"

module Hikyaku
  module HTTP
    class Client
      # An answer that was asked for and is on its way. Made by {Client#fetch}; any thread may wait for it.
      #
      #     first, second = client.fetch("http://example.com/a"), client.fetch("http://example.com/b")
      #     first.value.body
      class Fetch
        # @return [String] what was asked for
        attr_reader :url
        # @return [Float, nil] seconds of the monotonic clock, when it has taken too long
        # @api private
        attr_reader :deadline
        # @return [ConditionVariable]
        # @api private
        attr_reader :news
        # @return [Terms]
        # @api private
        attr_reader :terms
        # @return [Notice, nil] which is told of the outcome by the first that waits for it
        # @api private
        attr_writer :notice

        # @api private
        def initialize(url, manager, driver, terms = RequestOptions.new, news = ConditionVariable.new)
          @url = url
          @manager = manager
          @driver = driver
          @terms = terms
          @deadline = terms.total && driver.now + terms.total
          @news = news
          @outcome = @notice = nil
        end

        # Waits.
        #
        # @return [Response]
        # @raise [RequestFailed]
        def value = outcome.value

        # Waits.
        #
        # @return [Response, Failure]
        def outcome
          return awaited unless @notice
          noticed(whole: true) { awaited }
        end

        # @return [Boolean] whether there is an outcome, so that {#value} does not wait
        def done? = !@outcome.nil?

        # It is not wanted any more: its value raises {Canceled}, unless it is there already.
        #
        # @return [void]
        def cancel
          @driver.synchronize { give_up(Canceled.new("#{@url} was asked for no longer", url: @url)) }
        end

        # The same, unless the server was asked already: then its answer comes in any case.
        #
        # @api private
        # @return [Boolean] whether it is not wanted any more
        def withdraw
          @driver.synchronize do
            next false if done? || @manager.asked?(self)
            cancel
            true
          end
        end

        # @api private
        # @return [Boolean] whether what waits for it can go on
        def satisfied? = done?

        # @api private
        def complete(response)
          return if done?
          @outcome = response
          @news.broadcast
        end

        # @api private
        def fail(error) = complete(Failure.new(error, @url))

        # @api private
        def expire = give_up(TimedOut.new("#{@url} took longer than #{@terms.total} s", phase: :total, url: @url))

        # @return [String]
        def inspect = "#<#{self.class} #{@url} #{done? ? @outcome.status || "failed" : "under way"}>"

        private

        def awaited
          @driver.wait(self)
          @outcome
        end

        # Once, in the thread of who waits, and outside of the lock.
        def noticed(whole:, &block)
          notice = @driver.synchronize { @notice.tap { @notice = nil } }
          notice ? notice.around(@driver, whole: whole, &block) : yield
        end

        def give_up(error)
          return if done?
          @manager.leave(self)
          fail(error)
        end
      end

      # Several fetches that are waited for together.
      class Batch
        attr_reader :news

        def initialize(driver)
          @driver = driver
          @news = ConditionVariable.new
          @fetches = []
          @done = 0
          @any = false
        end

        def <<(fetch)
          @fetches << fetch
        end

        # Waits for all.
        def outcomes
          @driver.wait(self)
          @fetches.map(&:outcome)
        end

        # Gives each as soon as it is there.
        def each
          @any = true
          until @fetches.empty?
            @driver.wait(self)
            there, @fetches = @fetches.partition(&:done?)
            there.each { |fetch| yield fetch.outcome }
          end
        end

        # Those that are not there are not wanted any more.
        def cancel = @fetches.each { |fetch| fetch.cancel unless fetch.done? }

        def satisfied?
          return @fetches.any?(&:done?) if @any
          @done += 1 while @done < @fetches.size && @fetches[@done].done?
          @done == @fetches.size
        end

        def deadline = @fetches.filter_map { |fetch| fetch.deadline unless fetch.done? }.min

        def expire
          now = @driver.now
          @fetches.each { |fetch| fetch.expire if fetch.deadline && fetch.deadline <= now }
        end
      end

      # What an instrumenter is told of one request: `request.hikyaku_http`, once, by whoever waits for the answer first, and while he does. Of a stream that is
      # until its head is there.
      #
      #     method, url           what was asked for; the URL is without query, as that may be secret
      #     status, bytes         of the answer; bytes of its body, not of a stream
      #     cached                whether nobody was asked
      #     seconds               since it was begun, which may be before anybody waited
      #     error                 the name of its class, where there is no answer; its message has the whole URL, and is not told
      class Notification
        NAME = "request.hikyaku_http"
        QUERY = /\?.*/m
        private_constant :NAME, :QUERY

        def initialize(instrumenter, request, now)
          @instrumenter = instrumenter
          @request = request
          @began = now
        end

        def around(driver, whole:)
          payload = {method: @request.method, url: @request.address.url.sub(QUERY, ""), status: nil, bytes: nil, cached: nil, seconds: nil, error: nil}
          outcome = nil
          @instrumenter.instrument(NAME, payload) do
            outcome = yield
            payload[:seconds] = driver.now - @began
            tell(payload, outcome)
            payload[:bytes] = outcome.body.bytesize if whole && outcome.error.nil?
          end
          outcome || yield
        end

        private

        def tell(payload, outcome)
          error = outcome.error or return payload.update(status: outcome.status, cached: outcome.cached?)
          payload.update(status: (error.status if error.is_a?(BadStatus)), error: error.class.name)
        end
      end
    end
  end
end
