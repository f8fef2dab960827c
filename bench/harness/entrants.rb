# frozen_string_literal: true

require_relative "broker_floor"
require_relative "floor"
require_relative "hikyaku_broker"
require_relative "hub"
require_relative "link_floor"

module Bench
  # All who can take part, by name: the floors, Hikyaku's hub with each engine, standalone and mounted in Puma, its broker with
  # each, and whatever a file of bench/peers adds. A benchmark goes through them: no row of a table is written by hand.
  module Entrants
    PEERS = File.expand_path("../peers", __dir__)
    @all = {}

    class << self
      # @param entrant [Entrant]
      def add(entrant) = @all[entrant.name] = entrant

      # @param suite [Suite, nil] those that can be on its page; nil: all
      # @return [Array<String>]
      def names(suite = nil) = @all.values.select { |entrant| suite.nil? || entrant.suites.include?(suite) }.map(&:name)

      # @param name [String]
      # @return [Entrant]
      # @raise [KeyError]
      def fetch(name) = @all.fetch(name) { raise KeyError, "there is no entrant #{name}; there are #{names.join(", ")}" }
    end

    add Floor.new
    add BrokerFloor::OneByOne.new
    add BrokerFloor::Frames.new
    add LinkFloor.new
    %w[c ruby].each do |engine|
      add Hub::Standalone.new(engine)
      add Hub::Mounted.new(engine)
      add HikyakuBroker.new(engine)
    end
    add Hub::Standalone.new("c", io_uring: false)
    add Hub::Standalone.new("ruby", yjit: true)
    add HikyakuBroker.new("ruby", yjit: true)
    Dir[File.join(PEERS, "*.rb")].sort.each { |file| require file }
  end
end
