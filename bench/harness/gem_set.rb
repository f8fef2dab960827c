# frozen_string_literal: true

require "bundler"
require "open3"
require "rbconfig"

module Bench
  # The gems of a Gemfile that is not the project's own, installed when a benchmark needs them.
  class GemSet
    PATH = File.expand_path("../../vendor/bundle", __dir__)
    # What Bundler has told this process about the project's own gems.
    OWN = %w[RUBYOPT RUBYLIB BUNDLE_BIN_PATH BUNDLER_SETUP BUNDLER_VERSION GEM_HOME GEM_PATH].to_h { |name| [name, nil] }.freeze

    # They cannot be had.
    class Unavailable < StandardError
    end

    # @param gemfile [String]
    def initialize(gemfile)
      @gemfile = gemfile
      @folder = File.join("bench", File.basename(File.dirname(gemfile)))
    end

    # @return [void]
    # @raise [Unavailable] with what Bundler said
    def prepare
      return if @ready || check
      warn "installing the gems of #{@folder}"
      said, status = Open3.capture2e(bundler, "bundle", "install", "--jobs", "2")
      raise Unavailable, "the gems of #{@folder} cannot be installed: #{said.lines.grep(/\S/).last&.strip}" unless status.success?
      @ready = true
    end

    # @return [Hash{String => String, nil}] the environment in which a program has these gems
    def environment = bundler.merge("RUBYOPT" => "-rbundler/setup")

    # @return [Array<String>] the same as words that follow `env`
    def words
      unset, set = environment.partition { |_, value| value.nil? }
      unset.flat_map { |name, _| ["-u", name] } + set.map { |name, value| "#{name}=#{value}" }
    end

    # @param program [String] of one of them, for example "puma"
    # @return [Array<String>] what starts it
    def command(program) = [RbConfig.ruby, File.join(PATH, Gem.ruby_engine, RbConfig::CONFIG["ruby_version"], "bin", program)]

    # @param names [Array<String>]
    # @return [Hash{String => String}] their versions, by the lock file
    def versions(*names)
      locked = Bundler::LockfileParser.new(File.read("#{@gemfile}.lock")).specs
      names.to_h { |name| [name, locked.find { |spec| spec.name == name }&.version&.to_s] }.compact
    end

    private

    def bundler = OWN.merge("BUNDLE_GEMFILE" => @gemfile, "BUNDLE_PATH" => PATH, "BUNDLE_FROZEN" => "true")

    def check = @ready = Open3.capture2e(bundler, "bundle", "check").last.success?
  end
end
