# frozen_string_literal: true

require_relative "gem_set"

module Bench
  # The gems of bench/peers/Gemfile, beside those of the project: see {GemSet}.
  module PeerGems
    GEMFILE = File.expand_path("../peers/Gemfile", __dir__)
    SET = GemSet.new(GEMFILE)
    private_constant :SET

    class << self
      def prepare = SET.prepare

      def environment = SET.environment

      def command(program) = SET.command(program)

      def versions(*names) = SET.versions(*names)
    end
  end
end
