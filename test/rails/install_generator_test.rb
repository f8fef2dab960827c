# frozen_string_literal: true

require "test_helper"
require "support/rails_application"
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
    assert_equal "Rails.application.routes.draw do\n  hikyaku\nend\n", read("config/routes.rb")
    assert_match(/bin\/rails credentials:edit/, output)
    assert_match(/supported_http_methods/, output)
  end

  test "the initializer only has settings that exist, also where it is only a comment" do
    generate
    text = read("config/initializers/hikyaku.rb")
    names = text.scan(/config\.hikyaku\.(\w+) =/).flatten.uniq - ["hub"]
    refute_empty names
    names.each { |name| assert_equal name, Hikyaku::Config::Settings.find(name)&.name&.to_s }
    assert system(RbConfig.ruby, "-c", File.join(@folder, "config/initializers/hikyaku.rb"), out: File::NULL)
  end

  test "a second time changes nothing, not even what was edited" do
    generate
    write("config/initializers/hikyaku.rb", "# mine\n")
    before = read("config/routes.rb")
    generate
    assert_equal ["# mine\n", before], [read("config/initializers/hikyaku.rb"), read("config/routes.rb")]
  end

  private

  def generate
    out, = capture_io { Hikyaku::Generators::InstallGenerator.start([], destination_root: @folder) }
    out
  end

  def read(name) = File.read(File.join(@folder, name))

  def write(name, text) = File.write(File.join(@folder, name), text)
end
