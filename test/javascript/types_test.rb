# frozen_string_literal: true

require "test_helper"
require "fileutils"
require "json"
require "open3"
require "support/availability"
require "tmpdir"

# The types of the client for browsers, as the package for npm has them: what they allow and forbid (types/usage.ts), and that what they
# declare is there. Wrong use that compiles is an error of the compiler's: TypeScript expects one after each `@ts-expect-error`.
class TypesTest < Minitest::Test
  include Availability

  PACKAGE = File.join(ROOT, "app/assets")
  COMPILER = File.join(ROOT, "node_modules/typescript/bin/tsc")
  USAGE = File.join(__dir__, "types/usage.ts")
  DECLARED = File.join(__dir__, "support/declared.mjs")
  FLAGS = %w[--noEmit --strict --target es2022 --lib es2022,dom].freeze
  # As a bundler finds modules, as Node.js does, and as it did before packages had `exports`.
  WAYS = {"bundler" => "esnext", "nodenext" => "nodenext", "node10" => "esnext"}.freeze

  def setup
    @node, = skip_unless_available("node", npm: "typescript")
    @folder = Dir.mktmpdir("hikyaku-types")
    FileUtils.mkdir(File.join(@folder, "node_modules"))
    FileUtils.ln_s(PACKAGE, File.join(@folder, "node_modules/hikyaku"))
  end

  def teardown
    FileUtils.rm_rf(@folder) if @folder
  end

  test "right use of the types compiles, and wrong use does not" do
    FileUtils.cp(USAGE, File.join(@folder, "usage.mts"))
    WAYS.map { |way| Thread.new { compile(*way) } }.map(&:value).each { |output, status| assert status.success?, output }
  end

  {"hikyaku" => %w[Coordinator EventParser Hikyaku LIMITS Stream pauseAfter], "hikyaku-presence" => %w[Roster],
   "hikyaku-send" => %w[Expiring Replies SendError Throttle byType ephemeral send],
   "hikyaku-msgpack" => %w[Malformed MessagePackParser MessagePackSource Timestamp pack unpack]}.each do |name, exports|
    test "what #{name}.d.ts declares, #{name}.js has, and the reverse" do
      output, status = Open3.capture2e(@node, DECLARED, *%w[.d.ts .js].map { |ending| File.join(PACKAGE, "javascripts/#{name}#{ending}") })
      assert status.success?, output
      answer = JSON.parse(output)
      assert_equal [exports, []], answer.values_at("declared", "differences")
      assert_operator answer["looked"], :>, 5
    end
  end

  test "every entry of the package leads to a module and its types" do
    entries = JSON.parse(File.read(File.join(PACKAGE, "package.json"))).fetch("exports")
    assert_equal [".", "./presence", "./send", "./msgpack"], entries.keys
    entries.each_value { |entry| assert_equal %w[types default], entry.keys.each { |key| assert_path_exists File.join(PACKAGE, entry[key]) } }
  end

  private

  # @return [Array(String, Process::Status)] what the compiler says
  def compile(resolution, modules)
    Open3.capture2e(@node, COMPILER, *FLAGS, "--module", modules, "--moduleResolution", resolution, "usage.mts", chdir: @folder)
  end
end
