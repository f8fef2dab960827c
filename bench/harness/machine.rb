# frozen_string_literal: true

require "etc"
require "open3"

module Bench
  # What a figure cannot be read without: which code, on what.
  module Machine
    ROOT = File.expand_path("../..", __dir__)

    class << self
      # @param entrants [Array<Entrant>] whose versions are told too
      # @return [Hash{String => String}]
      def facts(entrants = [])
        {
          "commit" => commit, "date" => Time.now.utc.strftime("%Y-%m-%d %H:%M UTC"), "cpu" => cpu,
          "cores" => Etc.nprocessors.to_s, "kernel" => Etc.uname.values_at(:sysname, :release, :machine).join(" "),
          "compiler" => said(ENV.fetch("CC", "cc"), "--version").lines.first.to_s.strip, "ruby" => RUBY_DESCRIPTION,
          "puma" => gem_version("puma"), **entrants.map(&:versions).reduce({}, :merge)
        }
      end

      private

      def commit
        id = said("git", "-C", ROOT, "rev-parse", "--short", "HEAD").strip
        changed = !said("git", "-C", ROOT, "status", "--porcelain", "--", "lib", "exe", "ext").strip.empty?
        changed ? "#{id} and changes not committed" : id
      end

      def cpu
        File.foreach("/proc/cpuinfo") { |line| return line.split(":", 2).last.strip if line.start_with?("model name") }
        "unknown"
      rescue SystemCallError
        "unknown"
      end

      def gem_version(name) = Gem.loaded_specs[name]&.version.to_s

      def said(*command)
        Open3.capture2e(*command).first
      rescue SystemCallError
        "unknown"
      end
    end
  end
end
