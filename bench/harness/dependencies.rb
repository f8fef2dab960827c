# frozen_string_literal: true

require "bundler"
require "fileutils"
require "json"
require "open3"
require "rbconfig"

module Bench
  # A benchmark needs something that cannot be had on this machine; the message says how to get it.
  class Unavailable < StandardError
  end

  # A package of Debian. It is installed where that is allowed; its services are not started.
  class DebianPackage
    POLICY = "/usr/sbin/policy-rc.d"

    def self.find(program)
      [*ENV.fetch("PATH", "").split(":"), "/usr/sbin", "/usr/local/sbin"].map { |folder| File.join(folder, program) }.find { |path| File.executable?(path) }
    end

    # @param files [Array<String>] programs that must be in the path, or globs of files
    def initialize(name, *files)
      @name = name
      @files = files
    end

    def prepare
      install unless installed?
      raise Unavailable, "#{@name} is not installed: apt-get install #{@name}" unless installed?
    end

    def versions
      version = DebianPackage.find("dpkg-query") ? `dpkg-query -W -f '${Version}' #{@name} 2>/dev/null` : ""
      version.empty? ? {} : {@name => version}
    end

    private

    def installed? = @files.all? { |file| file.start_with?("/") ? Dir[file].any? : DebianPackage.find(file) }

    def install
      return unless Process.uid.zero? && DebianPackage.find("apt-get")
      warn "installing #{@name}"
      # Debian asks this script whether it may start a service after the installation.
      own = !File.exist?(POLICY) && File.write(POLICY, "#!/bin/sh\nexit 101\n", perm: 0o755)
      system({"DEBIAN_FRONTEND" => "noninteractive"}, "apt-get", "install", "--yes", "--no-install-recommends", @name, out: File::NULL)
    ensure
      File.delete(POLICY) if own
    end
  end

  # The gems of a Gemfile below bench/, apart from the project's own, installed when a benchmark needs them.
  class GemSet
    PATH = File.expand_path("../../vendor/bundle", __dir__)
    # Bundler's settings of this process.
    OWN = %w[RUBYOPT RUBYLIB BUNDLE_BIN_PATH BUNDLER_SETUP BUNDLER_VERSION GEM_HOME GEM_PATH].to_h { |name| [name, nil] }.freeze

    attr_reader :gemfile

    def initialize(folder, *names)
      @folder = "bench/#{folder}"
      @gemfile = File.expand_path("../#{folder}/Gemfile", __dir__)
      @names = names
    end

    # The same gems, with the versions of these.
    def with(*names) = dup.tap { |set| set.instance_variable_set(:@names, names) }

    def prepare
      return if bundle("check").last.success?
      warn "installing the gems of #{@folder}"
      output, status = bundle("install", "--jobs", "2")
      raise Unavailable, "the gems of #{@folder} cannot be installed: #{output.lines.grep(/\S/).last&.strip}" unless status.success?
    end

    # The environment of a program that uses these gems.
    def environment = bundler.merge("RUBYOPT" => "-rbundler/setup")

    def command(program) = [RbConfig.ruby, File.join(PATH, Gem.ruby_engine, RbConfig::CONFIG["ruby_version"], "bin", program)]

    def versions
      locked = Bundler::LockfileParser.new(File.read("#{gemfile}.lock")).specs
      @names.to_h { |name| [name, locked.find { |spec| spec.name == name }&.version&.to_s] }.compact
    end

    private

    def bundler = OWN.merge("BUNDLE_GEMFILE" => gemfile, "BUNDLE_PATH" => PATH, "BUNDLE_FROZEN" => "true")

    def bundle(*words) = Open3.capture2e(bundler, "bundle", *words)
  end

  # Node.js and the packages of bench/node.
  module NodePackages
    FOLDER = File.expand_path("../node", __dir__)
    COMMAND = ["node", File.join(FOLDER, "load.mjs")].freeze
    LOCK = File.join(FOLDER, "package-lock.json")
    STAMP = File.join(FOLDER, "node_modules/.bench-lock")
    MIN_VERSION = 18

    class << self
      def prepare
        raise Unavailable, "Node.js #{MIN_VERSION} or newer is not installed" if version.to_i < MIN_VERSION
        return if File.exist?(STAMP) && FileUtils.identical?(LOCK, STAMP)
        warn "installing the npm packages of bench/node"
        output, status = Open3.capture2e("npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts", chdir: FOLDER)
        raise Unavailable, "npm ci in bench/node failed: #{output.lines.grep(/\S/).last&.strip}" unless status.success?
        FileUtils.cp(LOCK, STAMP)
      rescue Errno::ENOENT => error
        raise Unavailable, error.message
      end

      # @return [String, nil] why they cannot be used
      def obstacle
        prepare
      rescue Unavailable => error
        error.message
      end

      def versions
        packages = JSON.parse(File.read(LOCK))["packages"].transform_keys { |path| path.delete_prefix("node_modules/") }
        {"node" => version, **packages.slice("eventsource", "@rails/actioncable", "ws").transform_values { |its| its["version"] }}.compact
      end

      private

      def version
        Open3.capture2("node", "--version").first[/\d[\d.]*/]
      rescue Errno::ENOENT
        nil
      end
    end
  end
end
