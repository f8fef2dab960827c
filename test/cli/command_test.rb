# frozen_string_literal: true

require_relative "cli_helper"
require "open3"
require "rbconfig"

class CLICommandTest < Minitest::Test
  include CommandLine

  EXE = File.expand_path("../../exe/hikyaku", __dir__)
  COMMANDS = Hikyaku::CLI::COMMANDS.keys

  test "help lists the commands with examples" do
    out = done("--help")
    COMMANDS.each { |name| assert_match(/^  #{name} +[A-Z]/, out) }
    assert_includes out, "Examples:\n  hikyaku serve --dev"
    assert_equal out, done("-h")
    assert_equal out, done("help")
  end

  COMMANDS.each do |name|
    test "help of #{name} says how it is called, what it does, and gives examples" do
      out = done(name, "--help")
      assert out.start_with?("Usage: hikyaku #{name}"), out
      assert_match(/^Examples:\n(  .*\bhikyaku #{name}.*\n?)+\z/, out)
      assert_equal out, done("help", name)
      assert_equal out, done(name, "-h")
    end

    test "#{name} refuses an option that it does not know, in one line" do
      assert_equal "unknown option --frobnicate; see hikyaku #{name} --help", refused(name, "--frobnicate")
      assert_equal "unknown option --frobnicate; see hikyaku #{name} --help", refused(name, "--frobnicate=s3cret")
      assert_match(/unknown option -Z/, refused(name, "-Z"))
      assert_match(/did you mean --help\?/, refused(name, "--hepl"))
      assert_match(/unknown option --versio;/, refused(name, "--versio"))
      assert_equal "--help takes no value", refused(name, "--help=yes")
    end

    next if name == "fetch" # it takes any number of URLs

    test "#{name} refuses what it does not expect" do
      operands = ["x"] * {"publish" => 2, "disconnect" => 1, "doctor" => 1, "send" => 2, "receive" => 1, "queues" => 1, "identities" => 1, "dead" => 1, "explain" => 1, "inspect" => 1}.fetch(name, 0)
      assert_equal "unexpected \"more\"; see hikyaku #{name} --help", refused(name, *operands, "more")
      assert_equal "unexpected \"--help\"; see hikyaku #{name} --help", refused(name, *operands, "--", "--help")
    end
  end

  test "the examples in the help of each command are understood" do
    COMMANDS.each do |name|
      done(name, "--help")[/^Examples:\n(.+)/m, 1].scan(/--[a-z-]+/).each do |option|
        assert_match(/^ +(-h, )?#{option.sub("--", "--(\\[no-\\])?")}\b/, done(name, "--help"), "#{name} #{option}")
      end
    end
  end

  # [command, arguments, what was meant]
  ELSEWHERE = [
    ["serve", "--port", "--listen"], ["serve", "--port=3000", "--listen"], ["serve", "-p", "--listen"], ["serve", "-p3000", "--listen"], ["serve", "--bind", "--listen"],
    ["serve", "--host", "--listen"], ["proxy", "-p", "--listen"], ["broker", "--port", "--listen"], ["serve", "--dir", "--storage"], ["serve", "-c", "--config"],
    ["serve", "-e", "--engine"], ["serve", "-d", "--dev"], ["serve", "-s", "--storage"], ["serve", "-C", "--config"], ["serve", "-b", "--listen"], ["broker", "-s", "--socket"], ["serve", "-l", "--legacy"], ["serve", "--log", "--log-level"], ["serve", "--key", "--publisher-key"],
    ["serve", "--cors", "--cors-origin"], ["publish", "--host", "--listen"]
  ].freeze

  test "a short option, or one that other servers have, is answered with the one that was meant, and never taken for it" do
    ELSEWHERE.each do |name, given, meant|
      assert_equal "unknown option #{given[/\A(?:-[^-]|[^=]*)/]}; did you mean #{meant}?", refused(name, given, "1"), [name, given].join(" ")
    end
    assert_match(/\AUsage: hikyaku serve/, done("serve", "-h"))
  end

  test "a short option with which none begins is answered with where they are listed" do
    [%w[serve -x], %w[serve -k], %w[proxy -d], %w[proxy -c], %w[broker -x], %w[broker -k]].each do |name, given|
      assert_equal "unknown option #{given}; see hikyaku #{name} --help", refused(name, given, "1")
    end
  end

  test "what is suggested is another option, and one that the command has" do
    heads = COMMANDS.to_h { |name| [name, done(name, "--help").scan(/^ {2,6}(?:-\w, )?(--\S+)/).flatten.flat_map { |option| [option.sub("[no-]", ""), option.sub("[no-]", "no-")] }.uniq] }
    options = heads.values.flatten.uniq
    assert_operator options.size, :>, 100
    COMMANDS.each do |name|
      (options - heads[name]).each do |option|
        message = refused(name, option)
        assert message.start_with?("unknown option #{option};"), message
        meant = message[/did you mean (.+)\?\z/, 1] or next
        assert_includes heads[name], meant, "#{name} #{option}"
      end
    end
  end

  test "an option whose value was forgotten does not swallow the next" do
    assert_equal "--listen needs a value", refused("serve", "--listen", "--dev")
    assert_equal "--listen needs a value", refused("serve", "--dev", "--listen")
    assert_equal "--publisher-key needs a value", refused("token", "--publisher-key", "--publish", "*")
    assert_equal "--dev takes no value", refused("serve", "--dev=yes")
  end

  test "without a command, or with an unknown one, it says what there is" do
    assert_match(/\Agive a command: serve, token/, refused)
    assert_equal "unknown command pubish; did you mean publish?", refused("pubish")
    assert_equal "unknown command zzz; hikyaku --help lists them", refused("zzz")
    assert_equal "unknown command ; hikyaku --help lists them", refused("")
    assert_match(/\Aunknown command --frob/, refused("--frob"))
    assert_match(/\Aunknown command \[31m/, refused("\e[31m\n"))
  end

  test "version is printed" do
    assert done("version").start_with?("hikyaku #{Hikyaku::VERSION} (ruby")
    assert_equal "hikyaku #{Hikyaku::VERSION}\n", done("--version")
    assert_equal "hikyaku #{Hikyaku::VERSION}\n", done("serve", "--version")
  end

  test "errors of the configuration end with code 2 and one line" do
    assert_match(/\A--heartbeat: expected a number of seconds/, refused("serve", "--dev", "--heartbeat", "soon"))
    assert_match(/\AHIKYAKU_LISTEN: expected HOST:PORT/, refused("serve", "--dev", env: {"HIKYAKU_LISTEN" => "x y"}))
    assert_match(%r{\A/does/not/exist: cannot be read: no such file}, refused("serve", "--config", "/does/not/exist"))
    assert_match(%r{\A/does/not/exist: cannot be read}, refused("token", "--publish", "*", env: {"HIKYAKU_CONFIG" => "/does/not/exist"}))
    assert_match(/\A--engine: expected c or ruby/, refused("serve", "--dev", "--engine", "rust"))
    assert_match(/\Anobody could use this hub/, refused("serve"))
    assert_match(/a secret that everybody knows/, refused("serve", "--dev", "--listen", ":3030"))
  end

  test "an unforeseen error is one line, unless its backtrace is asked for" do
    broken = Object.new
    def broken.read = raise(TypeError, "broken\n\e[1mpipe")
    out = StringIO.new
    err = StringIO.new
    run = ->(env) { Hikyaku::CLI.run(%w[token --dev --explain -], stdin: broken, stdout: out, stderr: err, env: env) }
    assert_equal 1, run.call({})
    assert_equal "hikyaku: TypeError: broken [1mpipe (HIKYAKU_DEBUG=1 shows where)\n", err.string
    assert_raises(TypeError) { run.call({"HIKYAKU_DEBUG" => "1"}) }
  end

  test "an unforeseen error does not show the object that it is about, which may be a secret" do
    env = {"HIKYAKU_TOKEN" => "s3cret"}
    {"NoMethodError: there is no foo" => -> { env.foo }, "FrozenError: a frozen String was to be changed" => -> { "s3cret" << "x" },
     "NameError: there is no @x y" => -> { env.instance_variable_get("@x y") }}.each do |sentence, mistake|
      broken = Object.new
      broken.define_singleton_method(:read, &mistake)
      err = StringIO.new
      assert_equal 1, Hikyaku::CLI.run(%w[token --dev --explain -], stdin: broken, stdout: StringIO.new, stderr: err, env: env)
      assert_equal "hikyaku: #{sentence} (HIKYAKU_DEBUG=1 shows where)\n", err.string
    end
  end

  test "interrupts and readers that go away are quiet" do
    {Interrupt => 130, Errno::EPIPE => 141}.each do |error, code|
      out = Object.new
      out.define_singleton_method(:puts) { |*| raise error }
      err = StringIO.new
      assert_equal code, Hikyaku::CLI.run(["version"], stdout: out, stderr: err, env: {})
      assert_empty err.string
    end
  end

  test "the executable runs from any folder, and version loads no server, Rack or token library" do
    Dir.chdir("/") do
      version = "hikyaku #{Hikyaku::VERSION} (#{RUBY_ENGINE} #{RUBY_ENGINE_VERSION}, #{RUBY_PLATFORM})\n"
      out, status = Open3.capture2e(RbConfig.ruby, "-r", "rbconfig", "-e", <<~RUBY, EXE)
        ARGV.replace(["version"])
        exe = #{EXE.inspect}
        begin
          load exe
        ensure
          puts $LOADED_FEATURES.grep(%r{/(rack|jwt|puma|openssl|psych|net/http|nio)\\b})
        end
      RUBY
      assert_equal version, out
      assert status.success?
    end
    _, err, status = Open3.capture3(RbConfig.ruby, EXE, "nonsense")
    assert_equal [2, "hikyaku: unknown command nonsense; hikyaku --help lists them\n"], [status.exitstatus, err]
  end
end
