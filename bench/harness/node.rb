# frozen_string_literal: true

require "fileutils"
require "json"
require "open3"

module Bench
  # The clients of bench/node, which run in Node.js, and their packages, which are installed when a benchmark needs them.
  module Node
    FOLDER = File.expand_path("../node", __dir__)
    LOCK = File.join(FOLDER, "package-lock.json")
    STAMP = File.join(FOLDER, "node_modules/.bench-lock")
    LEAST_VERSION = 18

    # Node or its packages cannot be had.
    class Unavailable < StandardError
    end

    class << self
      # @return [Array<String>] what starts the load generator
      def command = ["node", File.join(FOLDER, "load.mjs")]

      # Sees to it that all is there.
      #
      # @return [void]
      # @raise [Unavailable] with the reason, and what to do
      def prepare
        raise Unavailable, "Node.js #{LEAST_VERSION} or newer is not installed" if version.to_i < LEAST_VERSION
        return if installed?
        warn "installing the npm packages of bench/node"
        said, status = Open3.capture2e("npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts", chdir: FOLDER)
        raise Unavailable, "npm ci in bench/node failed: #{said.lines.grep(/\S/).last&.strip}" unless status.success?
        FileUtils.cp(LOCK, STAMP)
      rescue Errno::ENOENT => error
        raise Unavailable, error.message
      end

      # @return [String, nil] why its clients cannot take part
      def obstacle
        prepare
      rescue Unavailable => error
        error.message
      end

      # @return [Hash{String => String}] of Node and of the clients
      def versions
        lock = JSON.parse(File.read(LOCK))["packages"]
        {"node" => version, **lock.to_h { |path, its| [path.delete_prefix("node_modules/"), its["version"]] }
          .slice("eventsource", "@rails/actioncable", "ws")}.compact
      end

      private

      def version
        Open3.capture2("node", "--version").first[/\d[\d.]*/]
      rescue Errno::ENOENT
        nil
      end

      def installed? = File.exist?(STAMP) && FileUtils.identical?(LOCK, STAMP)
    end
  end
end
