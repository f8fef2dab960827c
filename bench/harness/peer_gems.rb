# frozen_string_literal: true

require "bundler"
require "open3"
require "rbconfig"

module Bench
  # The gems of bench/peers/Gemfile, beside those of the project, installed when a benchmark needs them.
  module PeerGems
    GEMFILE = File.expand_path("../peers/Gemfile", __dir__)
    PATH = File.expand_path("../../vendor/bundle", __dir__)
    # What Bundler has told this process about the project's own gems.
    OWN = %w[RUBYOPT RUBYLIB BUNDLE_BIN_PATH BUNDLER_SETUP BUNDLER_VERSION GEM_HOME GEM_PATH].to_h { |name| [name, nil] }.freeze

    # They cannot be had.
    class Unavailable < StandardError
    end

    class << self
      # @return [void]
      # @raise [Unavailable] with what Bundler said
      def prepare
        return if @ready || check
        warn "installing the gems of bench/peers"
        said, status = Open3.capture2e(bundler, "bundle", "install", "--jobs", "2")
        raise Unavailable, "the gems of bench/peers cannot be installed: #{said.lines.grep(/\S/).last&.strip}" unless status.success?
        @ready = true
      end

      # @return [Hash{String => String, nil}] the environment in which a program has these gems
      def environment = bundler.merge("RUBYOPT" => "-rbundler/setup")

      # @param program [String] of one of them, for example "puma"
      # @return [Array<String>] what starts it
      def command(program) = [RbConfig.ruby, File.join(PATH, Gem.ruby_engine, RbConfig::CONFIG["ruby_version"], "bin", program)]

      # @param names [Array<String>]
      # @return [Hash{String => String}] their versions, by the lock file
      def versions(*names)
        locked = Bundler::LockfileParser.new(File.read("#{GEMFILE}.lock")).specs
        names.to_h { |name| [name, locked.find { |spec| spec.name == name }&.version&.to_s] }.compact
      end

      private

      def bundler = OWN.merge("BUNDLE_GEMFILE" => GEMFILE, "BUNDLE_PATH" => PATH, "BUNDLE_FROZEN" => "true")

      def check = @ready = Open3.capture2e(bundler, "bundle", "check").last.success?
    end
  end
end
