# frozen_string_literal: true

module Hikyaku
  module HTTP
    class Client
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
    end
  end
end
