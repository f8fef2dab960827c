# frozen_string_literal: true

module Hikyaku
  module HTTP
    class Client
      # Several fetches that are waited for together.
      class Batch
        # @return [ConditionVariable] which the fetches share
        attr_reader :news

        # @param driver [Driver]
        def initialize(driver)
          @driver = driver
          @news = ConditionVariable.new
          @fetches = []
          @done = 0
          @any = false
        end

        # @param fetch [Fetch]
        # @return [void]
        def <<(fetch)
          @fetches << fetch
        end

        # Waits for all.
        #
        # @return [Array<Response, Failure>] in the order in which they were asked for
        def outcomes
          @driver.wait(self)
          @fetches.map(&:outcome)
        end

        # Gives each as soon as it is there.
        #
        # @yieldparam outcome [Response, Failure]
        # @return [void]
        def each
          @any = true
          until @fetches.empty?
            @driver.wait(self)
            there, @fetches = @fetches.partition(&:done?)
            there.each { |fetch| yield fetch.outcome }
          end
        end

        # Those that are not there are not wanted any more.
        #
        # @return [void]
        def cancel = @fetches.each { |fetch| fetch.cancel unless fetch.done? }

        # @api private
        def satisfied?
          return @fetches.any?(&:done?) if @any
          @done += 1 while @done < @fetches.size && @fetches[@done].done?
          @done == @fetches.size
        end

        # @api private
        def deadline = @fetches.filter_map { |fetch| fetch.deadline unless fetch.done? }.min

        # @api private
        def expire
          now = @driver.now
          @fetches.each { |fetch| fetch.expire if fetch.deadline && fetch.deadline <= now }
        end
      end
    end
  end
end
