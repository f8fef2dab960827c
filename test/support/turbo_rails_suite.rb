# frozen_string_literal: true

require "fileutils"
require "tmpdir"

# Runs turbo-rails' own tests, in its own application with Hikyaku in it: all but those of its installer. Those must fail that
# docs/guides/from-action-cable.md lists with the reasons, and no others.
#
#     bundle exec ruby test/support/turbo_rails_suite.rb FOLDER     # a checkout of turbo-rails, which stays as it is
class TurboRailsSuite
  ROOT = File.expand_path("../..", __dir__)
  GUIDE = File.join(ROOT, "docs/guides/from-action-cable.md")
  # What the guide says to write into an application.
  ADDED = {
    "config/initializers/hikyaku.rb" => <<~RUBY,
      Rails.application.config.hikyaku.turbo = true
      Rails.application.routes.append { hikyaku }
      Capybara.default_max_wait_time = 60
    RUBY
    "app/javascript/application.js" => %(import "hikyaku"\n)
  }.freeze
  LOAD = <<~'RUBY'
    Dir["test/**/*_test.rb"].sort.each { |file| require "./#{file}" unless file.end_with?("installer_test.rb") }
  RUBY

  def initialize(checkout)
    @checkout = checkout
  end

  # @return [String, nil] what is wrong
  def problem
    version = File.read(File.join(@checkout, "lib/turbo/version.rb"))[/VERSION = "(.+)"/, 1]
    return "the checkout is of turbo-rails #{version}, and #{GUIDE} speaks of #{expected_version}" if version != expected_version
    report = Dir.mktmpdir("turbo-rails") { |folder| run(File.join(folder, "turbo-rails")) } or return "the tests did not run"
    failed = report[:failed].to_h { |line| [line[/\A(.+?) \(/, 1], line] }
    puts "", "#{report[:tests]} tests of turbo-rails #{version}: #{report[:tests] - failed.size} passed, #{failed.size} failed", failed.values
    wrong(report, failed)
  end

  private

  def guide = @guide ||= File.read(GUIDE)

  def expected_count = Integer(guide[/the (\d+) tests of turbo-rails/, 1])

  def expected_version = guide[/tests of turbo-rails (\d\S+\d)/, 1]

  # @return [Array<String>] tests, as a report has them
  def excused = guide.scan(/^\| `(\S+Test)` \| (.+?) \|/).map { |type, name| "#{type}: test_#{name.gsub(/\s+/, "_")}" }

  def wrong(report, failed)
    return "#{report[:tests]} tests were run, and the guide speaks of #{expected_count}" if report[:tests] != expected_count
    return "skipped: #{report[:skipped].join(", ")}" if report[:skipped].any?
    unexpected, stale = failed.keys - excused, excused - failed.keys
    return "failed, and are not in the guide: #{unexpected.first(20).join(", ")}" if unexpected.any?
    "the guide says that they fail, and they pass: #{stale.join(", ")}" if stale.any?
  end

  def run(copy)
    FileUtils.cp_r(@checkout, copy)
    ADDED.each { |path, text| File.write(File.join(copy, "test/dummy", path), text, mode: "a") }
    report = File.join(copy, "report").tap { |path| FileUtils.touch(path) }
    env = {"HIKYAKU_TEST_REPORT" => report, "BUNDLE_GEMFILE" => ENV.fetch("BUNDLE_GEMFILE"), "RAILS_ENV" => "test", "FERRUM_PROCESS_TIMEOUT" => "120",
           "FERRUM_DEFAULT_TIMEOUT" => "60", **browser(copy)}
    system(env, "bundle", "exec", "rails", "db:test:prepare", chdir: File.join(copy, "test/dummy"), exception: true)
    # That some of them fail is known.
    system(env, "bundle", "exec", "ruby", "-W0", "-Itest", "-rminitest", "-r#{File.join(__dir__, "report")}", "-e", LOAD, chdir: copy)
    Marshal.load(File.binread(report)) if File.size?(report)
  end

  # Chromium does not run as root with its sandbox.
  def browser(folder)
    return {} unless Process.uid.zero?
    path = File.join(folder, "chromium")
    File.write(path, %(#!/bin/sh\nexec chromium --no-sandbox "$@"\n), perm: 0o755)
    {"BROWSER_PATH" => path}
  end
end

if $PROGRAM_NAME == __FILE__
  problem = TurboRailsSuite.new(File.expand_path(ARGV.fetch(0))).problem
  abort "turbo-rails: #{problem}" if problem
end
