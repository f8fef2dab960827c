# frozen_string_literal: true

require "open3"

# Programs, and headers of libraries, that not every machine has. A test that needs one says so with `skip_unless_available`; where
# nothing may be skipped (CI=1 or HIKYAKU_NO_SKIP=1) every skip is a failure, so that a machine that has
# lost its browser cannot pass by testing less.
module Availability
  NO_SKIP = ENV.values_at("CI", "HIKYAKU_NO_SKIP").any? { |value| !["", "0", "false"].include?(value.to_s) }

  # What one program is called on different systems.
  NAMES = {
    "chromium" => %w[chromium chromium-browser google-chrome google-chrome-stable],
    "firefox-esr" => %w[firefox-esr firefox]
  }.freeze

  # Which package of Debian has what the engine in C is compiled with, if it is there.
  HEADERS = {"zlib.h" => "zlib1g-dev"}.freeze

  ROOT = File.expand_path("../..", __dir__)

  class << self
    # @param program [String] for example "nginx"
    # @return [String, nil] its path
    def path_of(program)
      folders = ENV["PATH"].to_s.split(File::PATH_SEPARATOR) | %w[/usr/sbin /sbin]
      NAMES.fetch(program, [program]).product(folders).map { |name, folder| File.join(folder, name) }
        .find { |path| File.file?(path) && File.executable?(path) }
    end

    # @param name [String] for example "zlib.h"
    # @return [Boolean] whether a C compiler finds it
    def header?(name)
      (@headers ||= {}).fetch(name) { @headers[name] = Open3.capture2e("cc", "-E", "-x", "c", "-", stdin_data: "#include <#{name}>\n").last.success? }
    rescue Errno::ENOENT
      false
    end

    # @param package [String] name of an npm package
    def npm_package?(package) = File.exist?(File.join(ROOT, "node_modules", package, "package.json"))
  end

  # Skips the test unless all of this can be used.
  #
  # @param programs [Array<String>] for example "chromium", "nginx"
  # @param npm [Array<String>, String] packages of package.json
  # @param headers [Array<String>, String] keys of HEADERS: where they are the engine in C can do what it takes them for, and the test is run
  # @return [Array<String>] the programs' paths
  def skip_unless_available(*programs, npm: [], headers: [])
    paths = programs.map do |program|
      Availability.path_of(program) || skip("#{program} is not installed: bin/setup --tests")
    end
    Array(npm).each do |package|
      Availability.npm_package?(package) || skip("the npm package #{package} is not installed: bin/setup --tests")
    end
    Array(headers).each do |header|
      Availability.header?(header) || skip("#{header} is not installed (Debian: #{HEADERS.fetch(header)}): bin/setup --tests")
    end
    paths
  end

  # @raise [Minitest::Assertion] in place of the skip, where nothing may be skipped
  def skip(reason = nil, backtrace = caller)
    flunk("skipped where nothing may be skipped: #{reason}") if NO_SKIP
    super
  end
end
