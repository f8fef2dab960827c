# frozen_string_literal: true

require_relative "../error"
require_relative "beginning_costs"

module Hikyaku
  # The patterns would cost too much together with those that are already in use.
  class PatternsTooCostly < StandardError
    include Error
  end

  class Hub
    # Sums up the cost of matching the patterns in use, each counted once, and limits it: in total, for one client address, and for
    # patterns with a common beginning, which are compared with the same topics. The address that first uses a pattern is charged for
    # it as long as it is in use. Patterns with a common beginning are matched without interruption, so their limit counts the cost in this
    # engine. docs/topic-program.md, section "Cost", has the units.
    class PatternBudget
      # limit: :address or :hub
      def self.refusal(limit)
        whose = (limit == :address) ? "your address" : "this hub"
        "the patterns would cost too much beside those that are in use at #{whose}: use fewer patterns, simpler ones, or such that begin with more fixed text"
      end

      def initialize(total: nil, per_address: nil, per_beginning: nil)
        @limit = total
        @limit_of_address = per_address
        @limit_of_beginning = per_beginning
        @total = @refused = 0
        @addresses = Hash.new(0)
        @beginnings = Hash.new { |groups, group| groups[group] = BeginningCosts.new }
      end

      attr_reader :total, :refused

      def charge(matchers, address)
        charged = []
        matchers.each do |matcher|
          next if matcher.cost.zero?
          check(matcher, address)
          count(matcher, address, matcher.cost)
          charged << matcher
        end
      rescue PatternsTooCostly
        charged.each { |matcher| refund(matcher, address) }
        @refused += 1
        raise
      end

      def refund(matcher, address)
        count(matcher, address, -matcher.cost) unless matcher.cost.zero?
      end

      private

      def check(matcher, address)
        cost = matcher.cost
        raise PatternsTooCostly, self.class.refusal(:address) if address && over?(@addresses[address] + cost, @limit_of_address)
        return unless over?(@total + cost, @limit) || over?(cost_beside(matcher) + matcher.cost_in_ruby, @limit_of_beginning)
        raise PatternsTooCostly, self.class.refusal(:hub)
      end

      def over?(cost, limit) = limit && cost > limit

      # The highest cost of the patterns in use that are compared with the same topic as this one.
      def cost_beside(matcher)
        group, prefix = place(matcher)
        @beginnings.key?(group) ? @beginnings[group].through(prefix) : 0
      end

      def count(matcher, address, cost)
        group, prefix = place(matcher)
        @total += cost
        @beginnings[group].public_send((cost > 0) ? :add : :remove, prefix, matcher.cost_in_ruby)
        @beginnings.delete(group) if @beginnings[group].empty?
        @addresses.delete(address) if address && (@addresses[address] += cost) <= 0
      end

      def place(matcher)
        kind, *anchor = matcher.anchor
        (kind == :url) ? [anchor.first.to_s, anchor.last.to_s] : [kind, anchor.last]
      end
    end
  end
end
