# frozen_string_literal: true

require_relative "broker"

module Bench
  # A broker of Debian's: its package is installed when that is allowed, without starting what is in it.
  class PackagedBroker < Broker
    POLICY = "/usr/sbin/policy-rc.d"

    # @param package [String]
    # @param programs [Array<String>] of it, that are run
    def initialize(name, title, package:, programs:, levels: LEVELS)
      super(name, title, levels: levels)
      @package = package
      @programs = programs
    end

    # Installs the package when it may.
    def prepare
      install unless installed?
      raise Unavailable, "#{title} is not installed: apt-get install #{@package}" unless installed?
    end

    def versions
      version = find("dpkg-query") ? `dpkg-query -W -f '${Version}' #{@package} 2>/dev/null` : ""
      version.empty? ? {} : {@package => version}
    end

    private

    def installed? = @programs.all? { |program| find(program) }

    def install
      return unless Process.uid.zero? && find("apt-get")
      warn "installing #{@package}"
      without_starting do
        system({"DEBIAN_FRONTEND" => "noninteractive"}, "apt-get", "install", "--yes", "--no-install-recommends", @package, out: File::NULL)
      end
    end

    # Debian asks this script whether it may start a service that it has just installed.
    def without_starting
      return yield if File.exist?(POLICY)
      begin
        File.write(POLICY, "#!/bin/sh\nexit 101\n", perm: 0o755)
        yield
      ensure
        File.delete(POLICY)
      end
    end
  end
end
