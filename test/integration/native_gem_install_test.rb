# frozen_string_literal: true

require "test_helper"
require "fileutils"
require "open3"
require "rbconfig"
require "tmpdir"

# The gem as users get it: built, installed, compiled on the way.
class NativeGemInstallTest < Minitest::Test
  ROOT = File.expand_path("../..", __dir__)
  CLEAN = {"RUBYOPT" => nil, "RUBYLIB" => nil, "BUNDLE_GEMFILE" => nil, "MAKEFLAGS" => nil}.freeze

  test "installing the gem compiles the engine, which then publishes" do
    skip_unless_available("make", "cc")
    Dir.mktmpdir("hikyaku-gem") do |folder|
      package = File.join(folder, "hikyaku.gem")
      home = File.join(folder, "home")
      run!(CLEAN, "gem", "build", "--silent", "--output", package, "hikyaku.gemspec", chdir: ROOT)
      run!(CLEAN, "gem", "install", "--local", "--ignore-dependencies", "--no-document", "--install-dir", home, package, chdir: folder)
      script = <<~RUBY
        require "hikyaku/hub"
        require "hikyaku/hub/native_engine"
        puts $LOADED_FEATURES.grep(/native\\.so/)
        hub = Hikyaku::Hub.new(hub_url: "https://hub.example.com/.well-known/mercure", engine: Hikyaku::Hub::NativeEngine)
        puts hub.publish(Hikyaku::Hub::Update.new(topics: "/a", data: "x", id: "urn:first"))
      RUBY
      output = run!(CLEAN.merge("GEM_HOME" => home, "GEM_PATH" => [home, *Gem.path].join(":")), RbConfig.ruby, "-e", script, chdir: folder)
      assert_match(%r{\A#{Regexp.escape(File.realpath(home))}/.*/native\.so\nurn:first\n\z}, output)
    end
  end

  private

  def run!(env, *command, chdir:)
    output, status = Open3.capture2e(env, *command, chdir: chdir)
    assert status.success?, "#{command.join(" ")}:\n#{output}"
    output
  end
end
