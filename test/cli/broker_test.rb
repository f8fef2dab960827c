# frozen_string_literal: true

require_relative "cli_helper"
require "tempfile"
require "tmpdir"

class CLIBrokerTest < Minitest::Test
  include CommandLine

  test "every setting of the broker is an option without its prefix" do
    help = done("broker", "--help")
    own = Hikyaku::Config::Settings::ALL.select { |setting| setting.name.start_with?("broker_") }
    refute_empty own
    own.each { |setting| assert_match(/^ +--#{setting.flags.first.delete_prefix("broker-")}\b/, help) }
    refute_includes help, "--broker"
    %w[engine storage issuer publisher-key jwks log-level config].each { |flag| assert_match(/^ +--#{flag}\b/, help) }
    %w[anonymous history dev path].each { |flag| refute_match(/^ +--(?:\[no-\])?#{flag}\b/, help) }
  end

  test "no two of its options have one name" do
    names = done("broker", "--help").scan(/^ +--(?:\[no-\])?([a-z-]+)/).flatten
    assert_equal names.uniq, names
  end

  # [arguments, what the one line says]
  MISTAKES = [
    [%w[--level synced], "--level: without storage there is level memory alone; give --storage DIR"],
    [%w[--level often], "--level: expected memory, written or synced, got \"often\""],
    [%w[--listen 0.0.0.0:4040], "--listen: other machines reach 0.0.0.0:4040, so clients must say who they are: give --secret-file, or whose tokens are good (--jwks, --publisher-key); or listen on 127.0.0.1"],
    [%w[--socket none], "no client can reach this broker: give --socket PATH or --listen ADDRESS"],
    [%w[--secret-file /does/not/exist], "--secret-file: /does/not/exist cannot be read: no such file or directory"],
    [%w[--lease 60 --max-lease 30], "--lease: 60 seconds are more than a receiver may ask for; raise --max-lease"],
    [%w[--lease soon], "--lease: expected a number of seconds from 0.1 to 604800, got \"soon\""],
    [%w[--broker-level memory], "unknown option --broker-level; see hikyaku broker --help"],
    [%w[--dev], "unknown option --dev; see hikyaku broker --help"]
  ].freeze

  MISTAKES.each do |arguments, sentence|
    test "#{arguments.join(" ")} is refused in one line" do
      Dir.mktmpdir do |folder|
        socket = ["--socket", "#{folder}/b.sock"] unless arguments.include?("--socket")
        message = refused("broker", "--engine", "ruby", "--log-level", "error", *socket, *arguments)
        assert message.start_with?(sentence), message
      end
    end
  end

  test "variables and the file say the same, with the prefix" do
    Tempfile.create(["hub", ".yml"]) do |file|
      file.write("broker_lease: 60\n")
      file.close
      message = refused("broker", "--config", file.path, env: {"HIKYAKU_BROKER_MAX_LEASE" => "30"})
      assert_equal "#{file.path}:1: broker_lease: 60 seconds are more than a receiver may ask for; raise --max-lease", message
    end
  end

  test "an engine that is not there says so, and names the one that is" do
    Dir.mktmpdir do |folder|
      Dir.mkdir("#{folder}/hikyaku")
      File.write("#{folder}/hikyaku/native.rb", "raise LoadError, 'cannot load such file -- hikyaku/native'")
      lib = File.expand_path("../../lib", __dir__)
      exe = File.expand_path("../../exe/hikyaku", __dir__)
      output = IO.popen([{"RUBYLIB" => nil}, RbConfig.ruby, "-I#{folder}", "-I#{lib}", exe, "broker", "--socket", "#{folder}/b.sock", err: %i[child out]], &:read)
      assert_match(/^hikyaku: the engine in C is not there .*--engine ruby/, output)
    end
  end
end
