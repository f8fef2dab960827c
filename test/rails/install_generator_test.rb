# frozen_string_literal: true

require "test_helper"
require "support/rails_application"
require "support/rails_server"
require "generators/hikyaku/install/install_generator"

# `bin/rails generate hikyaku:install`
class InstallGeneratorTest < Minitest::Test
  def setup
    @folder = Dir.mktmpdir("hikyaku-generator")
    FileUtils.mkdir_p(File.join(@folder, "config/initializers"))
    write("config/routes.rb", "Rails.application.routes.draw do\nend\n")
  end

  def teardown = FileUtils.rm_rf(@folder)

  test "the initializer and the route are made, and the hints say what else there is" do
    output = generate
    assert_match(/^  config\.hikyaku\.anonymous = true$/, read("config/initializers/hikyaku.rb"))
    assert_match(/^  config\.hikyaku\.storage = .* unless Rails\.env\.test\?$/, read("config/initializers/hikyaku.rb"))
    assert_equal "Rails.application.routes.draw do\n  hikyaku\nend\n", read("config/routes.rb")
    assert_match(/bin\/rails credentials:edit/, output)
    assert_match(/supported_http_methods/, output)
  end

  test "the initializer only has settings that exist, also where it is only a comment" do
    generate
    text = read("config/initializers/hikyaku.rb")
    names = text.scan(/config\.hikyaku\.(\w+) =/).flatten.uniq - %w[hub without_hub]
    %w[turbo codec].each { |name| assert_includes names, name }
    names -= [*Hikyaku::Turbo::Settings::NAMES.map(&:to_s), "codec"]
    refute_empty names
    names.each { |name| assert_equal name, Hikyaku::Config::Settings.find(name)&.name&.to_s }
    assert system(RbConfig.ruby, "-c", File.join(@folder, "config/initializers/hikyaku.rb"), out: File::NULL)
  end

  # With turbo-rails in its Gemfile, and without Action Cable: only over the hub is there an element. And with the gem msgpack.
  BOOT = 'puts (Hikyaku::Turbo.settings.on? ? ApplicationController.render(inline: %(<%= turbo_stream_from "news" %>)) : "without")[/[\w-]+/] + " " + Mime[:msgpack].to_s'
  private_constant :BOOT

  test "an application starts with the file as it is; with the lines for Turbo and the codec it follows streams over the hub and knows MessagePack" do
    generate
    as_it_is = read("config/initializers/hikyaku.rb")
    with_both = as_it_is.gsub(/# (config\.hikyaku\.(?:turbo|codec) = true)$/, '\1')
    started = [as_it_is, with_both].map { |initializer| Thread.new { boot(initializer) } }.map(&:value)
    assert_equal [true, true], started.map { |_, status| status.success? }, started.map(&:first).join
    assert_equal ["without ", "hikyaku-stream-source application/vnd.msgpack"], started.map { |output, _| output.lines(chomp: true).last }
  end

  test "a second time changes nothing, not even what was edited" do
    generate
    write("config/initializers/hikyaku.rb", "# mine\n")
    before = read("config/routes.rb")
    generate
    assert_equal ["# mine\n", before], [read("config/initializers/hikyaku.rb"), read("config/routes.rb")]
  end

  private

  # @return [Array(String, Process::Status)] what an application with this initializer prints, and how it ends
  def boot(initializer)
    folder = RailsServer::Folder.new({"config/initializers/hikyaku.rb" => initializer}, example: File.join(RailsServer::ROOT, "examples/rails_live"))
    folder.run("bin/rails", "runner", BOOT)
  ensure
    folder&.remove
  end

  def generate
    out, = capture_io { Hikyaku::Generators::InstallGenerator.start([], destination_root: @folder) }
    out
  end

  def read(name) = File.read(File.join(@folder, name))

  def write(name, text) = File.write(File.join(@folder, name), text)
end
