# frozen_string_literal: true

require "fileutils"
require "open3"

module Bench
  # A program of another release of Debian than this machine's, unpacked in a folder of the checkout: nothing is installed. The
  # package lists, the cache and the key ring's word on them are apt's, in that folder too.
  class DebianFolder
    ROOT = File.expand_path("../../tmp/bench-debian", __dir__)
    MIRROR = "http://deb.debian.org/debian"
    KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"

    # The package cannot be had.
    class Unavailable < StandardError
    end

    # @param release [String] "trixie"
    def initialize(release)
      @release = release
      @folder = File.join(ROOT, release)
    end

    # @param package [String]
    # @param file [String] of it
    # @return [String] where that is
    # @raise [Unavailable]
    def fetch(package, file)
      path = File.join(tree(package), file)
      return path if File.exist?(path)
      warn "fetching #{package} of Debian #{@release} into a folder"
      prepare
      apt("update")
      apt("download", package)
      unpack(package)
      raise Unavailable, "#{package} of Debian #{@release} has no #{file}" unless File.exist?(path)
      path
    end

    # @param package [String]
    # @return [String, nil] of what was fetched
    def version(package)
      Dir[File.join(@folder, "#{package}_*.deb")].first&.then { |path| "#{File.basename(path).split("_")[1].gsub("%3a", ":")} (#{@release})" }
    end

    private

    def tree(package) = File.join(@folder, "tree", package)

    def prepare
      %w[lists/partial cache/archives/partial].each { |name| FileUtils.mkdir_p(File.join(@folder, name)) }
      File.write(File.join(@folder, "sources.list"), "deb [signed-by=#{KEYS}] #{MIRROR} #{@release} main\n")
      FileUtils.touch(File.join(@folder, "status"))
    end

    def apt(*words)
      settings = {"Dir::Etc::sourcelist" => "sources.list", "Dir::Etc::sourceparts" => "none", "Dir::State" => ".", "Dir::State::status" => "status",
                  "Dir::State::lists" => "lists", "Dir::Cache" => "cache", "APT::Sandbox::User" => "root"}
      flags = settings.flat_map { |name, value| ["-o", "#{name}=#{name.start_with?("Dir") ? File.join(@folder, value) : value}"] }
      said("apt-get", "-qq", *flags, *words)
    end

    def unpack(package)
      archive = Dir[File.join(@folder, "#{package}_*.deb")].max_by { |path| File.mtime(path) }
      FileUtils.mkdir_p(tree(package))
      said("dpkg-deb", "-x", archive.to_s, tree(package))
    end

    def said(*command)
      out, status = Open3.capture2e(*command, chdir: @folder)
      raise Unavailable, "#{command.first}: #{out.lines.grep(/\S/).last&.strip}" unless status.success?
      out
    rescue Errno::ENOENT
      raise Unavailable, "there is no #{command.first}: packages are fetched from Debian"
    end
  end
end
