# frozen_string_literal: true

require "test_helper"
require "open3"
require "rbconfig"
require "tmpdir"

# What a machine without a compiler does, as a Mac is: there the extension is not there.
class EngineChoiceTest < Minitest::Test
  ROOT = File.expand_path("../..", __dir__)
  WARNING = /the engine in Ruby serves, which is slower: the engine in C is not there \(no extension\)/
  SETTINGS = ["Hikyaku.start(engine: \"ruby\")", "config.hikyaku.engine = \"ruby\"", "--engine ruby"].freeze

  test "a library in developer mode warns, and has the engine in Ruby" do
    output = without_extension(<<~RUBY)
      require "hikyaku"
      web = Hikyaku.start(dev: true)
      p [web.config.engine, web.reactor.class]
    RUBY
    assert_match WARNING, output
    assert_match(/\["ruby", Hikyaku::Server::Reactor\]/, output)
  end

  test "whoever has no developer mode is told, in one line, what to set in a library, in Rails and in the shell" do
    output = without_extension(<<~RUBY)
      require "hikyaku"
      [{anonymous: true}, {dev: true, engine: "c"}, {dev: true, handover: "/tmp/a.sock"}].each do |settings|
        Hikyaku.start(**settings)
      rescue Hikyaku::NativeUnavailable => error
        puts error.message
      end
    RUBY
    assert_equal 3, output.lines.size, output
    output.each_line { |line| SETTINGS.each { |setting| assert_includes line, setting } }
  end

  test "the command in developer mode serves with the engine in Ruby, and one that names the engine in C does not" do
    output = without_extension(<<~RUBY)
      require "hikyaku/server"
      logger = Object.new
      %i[debug info warn error debug?].each { |name| logger.define_singleton_method(name) { |text = nil| puts text if name == :warn } }
      server = Hikyaku::Server.new(Hikyaku::Config.new(dev: true, listen: "127.0.0.1:0"), logger: logger).start
      puts "serves with \#{server.config.engine}"
      server.stop
    RUBY
    assert_match WARNING, output
    assert_includes output, "serves with ruby\n"
    output = without_extension(%(require "hikyaku/cli"; exit Hikyaku::CLI.run(%w[serve --dev --engine c --listen 127.0.0.1:0])))
    assert_equal 1, output.lines.size, output
    SETTINGS.each { |setting| assert_includes output, setting }
  end

  test "an application of Rails serves with the engine in Ruby in development, says so in the log and where it was started, and is told in production" do
    output = without_extension(<<~RUBY)
      require "minitest"
      require "support/rails_settings"
      include RailsSettings
      %w[development production].each do |name|
        Hikyaku.reset
        in_environment(name) do
          mount = Hikyaku::Railtie::Mount.new(settings(resource_identifier: "http://localhost:3000/.well-known/mercure"))
          status, = mount.call({"REQUEST_METHOD" => "GET", "PATH_INFO" => "/.well-known/oauth-protected-resource/.well-known/mercure", "SCRIPT_NAME" => "", "QUERY_STRING" => ""})
          puts [name, status, Hikyaku.web.config.engine].join(" ")
        rescue Hikyaku::NativeUnavailable => error
          puts [name, error.message].join(" ")
        end
      end
      puts RailsApplication::LOG.string
      FileUtils.rm_rf(RailsApplication::FOLDER)
    RUBY
    assert_includes output, "development 200 ruby\n"
    spoken, logged = output.split("development 200 ruby\n")
    assert_equal [1, 1], [spoken, logged].map { |part| part.scan(WARNING).size }, output
    assert_match(/^production the engine in C is not there/, output)
  end

  private

  def without_extension(script)
    Dir.mktmpdir do |folder|
      Dir.mkdir("#{folder}/hikyaku")
      File.write("#{folder}/hikyaku/native.rb", "raise LoadError, \"no extension\"\n")
      paths = [folder, "#{ROOT}/test", "#{ROOT}/lib"].map { |path| "-I#{path}" }
      output, = Open3.capture2e({"RUBYLIB" => nil}, RbConfig.ruby, *paths, "-e", "$stdout.sync = true\n#{script}")
      output
    end
  end
end
