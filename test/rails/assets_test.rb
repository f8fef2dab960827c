# frozen_string_literal: true

require "test_helper"
require "json"
require "open3"
require "rbconfig"
require "hikyaku/version"
require "support/availability"

# hikyaku.js in applications with an asset pipeline and an import map, and in one with neither. Each is a process of its own.
class AssetsTest < Minitest::Test
  ROOT = File.expand_path("../..", __dir__)
  APPLICATION = <<~RUBY
    require "logger"
    require "rails"
    require "action_controller/railtie"
    require "tmpdir"
    require "json"
    LIBRARIES.each { |name| require name }
    require "hikyaku"
    class Application < Rails::Application
      config.root = Dir.mktmpdir("hikyaku-assets")
      config.eager_load = false
      config.secret_key_base = "s" * 64
      config.logger = Logger.new(IO::NULL)
    end
    folder = Application.config.root
    (folder/"config").mkdir
    (folder/"config/importmap.rb").write(PINS)
    Application.initialize!
    puts JSON.generate(ANSWER.call)
  RUBY

  test "Propshaft serves the file, with a digest, and the import map leads to it" do
    answer = run_application(%w[propshaft importmap-rails], <<~RUBY)
      asset = Rails.application.assets.load_path.find("hikyaku.js")
      map = JSON.parse(Rails.application.importmap.to_json(resolver: ActionController::Base.helpers))
      {file: asset.path.to_s, import: map["imports"]["hikyaku"], others: map["imports"].values_at("hikyaku-presence", "hikyaku-send", "hikyaku-msgpack")}
    RUBY
    assert_equal File.join(ROOT, "app/assets/javascripts/hikyaku.js"), answer["file"]
    assert_match(%r{\A/assets/hikyaku-\h+\.js\z}, answer["import"])
    %w[presence send msgpack].zip(answer["others"]) { |name, path| assert_match(%r{\A/assets/hikyaku-#{name}-\h+\.js\z}, path) }
  end

  test "what the application pins counts more" do
    answer = run_application(%w[propshaft importmap-rails], <<~RUBY, pins: 'pin "hikyaku", to: "https://cdn.example.com/hikyaku.js"')
      JSON.parse(Rails.application.importmap.to_json(resolver: ActionController::Base.helpers))
    RUBY
    assert_equal "https://cdn.example.com/hikyaku.js", answer["imports"]["hikyaku"]
  end

  test "without an import map the file is served, and without a pipeline the application starts" do
    assert_equal [true], run_application(%w[propshaft], "[!Rails.application.assets.load_path.find('hikyaku.js').nil?]")
    assert_equal ["nothing"], run_application([], "['nothing']")
  end

  test "the gem has the files" do
    spec = Gem::Specification.load(File.join(ROOT, "hikyaku.gemspec"))
    wanted = %w[app/assets/javascripts/hikyaku.js app/assets/javascripts/hikyaku.d.ts app/assets/package.json config/importmap.rb
      app/assets/javascripts/hikyaku-msgpack.js app/assets/javascripts/hikyaku-msgpack.d.ts
      app/assets/javascripts/hikyaku-send.js app/assets/javascripts/hikyaku-send.d.ts]
    assert_empty wanted - Dir.chdir(ROOT) { spec.files }
  end

  test "npm makes a package of the same file, and of the gem's version" do
    npm, = skip_unless_available("npm")
    output, errors, status = Open3.capture3(npm, "pack", "--dry-run", "--json", chdir: File.join(ROOT, "app/assets"))
    assert status.success?, errors
    package = JSON.parse(output).first
    assert_equal ["hikyaku", Hikyaku::VERSION], package.values_at("name", "version")
    paths = package["files"].map { |file| file["path"] }
    assert_empty %w[javascripts/hikyaku.js javascripts/hikyaku.d.ts package.json] - paths
  end

  private

  # @return [Object] what the block of code gives, in an application with these libraries
  def run_application(libraries, code, pins: "")
    program = "LIBRARIES = #{libraries.inspect}\nPINS = #{pins.inspect}\nANSWER = -> {\n#{code}\n}\n#{APPLICATION}"
    output, errors, status = Open3.capture3({"RAILS_ENV" => "production"}, RbConfig.ruby, "-I#{ROOT}/lib", "-e", program, chdir: ROOT)
    assert status.success?, errors
    JSON.parse(output)
  end
end
