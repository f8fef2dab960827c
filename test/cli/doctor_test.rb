# frozen_string_literal: true

require_relative "cli_helper"
require "hikyaku/cli/doctor"
require "json"
require "open3"
require "rbconfig"
require "support/examination"
require "support/without_native"

class CLIDoctorTest < Minitest::Test
  include CommandLine
  include Examination

  EXE = File.expand_path("../../exe/hikyaku", __dir__)
  private_constant :EXE

  def setup
    @hub = hub(HOME)
    @flags = ["--connect", "127.0.0.1:#{@hub.port}", "--issuer", AccessTokens::ISSUER, "--idle", "0", "--patience", "10"]
    @keys = AccessTokens::SECRETS.flat_map { |role, secret| ["--#{role}-key", secret] }
  end

  test "a list to read, whose end counts, and code 0 where nothing failed" do
    result = hikyaku("doctor", *@flags, *@keys, HOME)
    assert_equal 0, result.code, result.out
    assert_match(/^ok    reach +#{HOME} answers in \d+ m?s$/o, result.out)
    assert_match(/^-     discovery +not checked: give --page URL/, result.out)
    assert_match(/\n\n\d+ well, 3 not checked\n\z/, result.out)
    assert_empty result.err
  end

  test "an installation without the extension in C is noted, whatever the hub is" do
    doctor = ->(options) { Open3.capture3({"RUBYOPT" => [ENV["RUBYOPT"], *options].join(" ")}, RbConfig.ruby, EXE, "doctor", "--idle", "0", "http://127.0.0.1:1/") }
    _, errors, = doctor.call([WithoutNative::OPTION])
    assert_match(/^hikyaku: the extension in C is not available in this installation \(no extension\).*install the gem again$/, errors)
    _, errors, = doctor.call([])
    refute_match(/the extension/, errors)
  end

  test "what failed comes with what to change, and code 1" do
    bad = proxy(without: %w[authorization], fields: {"server" => "nginx"})
    result = hikyaku("doctor", *@flags, "--connect", "127.0.0.1:#{bad.port}", "--only", "authorization", HOME)
    assert_equal 1, result.code
    assert_equal <<~TEXT, result.out
      FAIL  authorization  it does not get to the hub, which saw no token
                             pass the header Authorization on to the hub, unchanged
                             nginx: no proxy_set_header Authorization, and auth_basic off; in the hub's location

      1 failed
    TEXT
  end

  test "a key that is not the hub's comes with what to change" do
    result = hikyaku("doctor", *@flags, "--publisher-key", "another key of the publishers, and long enough", "--only", "publisher", HOME)
    assert_equal 1, result.code
    assert_match(/^FAIL  publisher +the token is refused: the publisher key is not the hub's.*\n +the hub and who signs need keys.*\n +hikyaku serve: --publisher-key KEY.*\n +rails: config\.hikyaku\.publisher_key/, result.out)
  end

  test "what is shown though it was not asked for is what the help says" do
    help = done("doctor", "--help").gsub(/\s+/, " ")
    always = Hikyaku::Doctor.const_get(:ALWAYS).map(&:id)
    assert_includes help, "--only CHECK This check, and what fails of those that all others need (#{always.join(", ")})"
    assert_includes help, "--skip CHECK Not this check; of those that all others need, what fails is shown all the same"
    guide = File.read(File.expand_path("../../docs/guides/doctor.md", __dir__))
    assert_includes guide, "#{always[0..-2].map { |name| "`#{name}`" }.join(", ")} and `#{always.last}` are run all the same"
    keys = ["--publisher-key", "another key of the publishers, and long enough"]
    checks = %w[--only --skip].map { |flag| hikyaku("doctor", *@flags, *keys, flag, {"--only" => "reach", "--skip" => "publisher"}.fetch(flag), HOME).out }
    checks.each { |out| assert_match(/^FAIL  publisher/, out) }
    assert_match(/\Aok    reach .*\nFAIL  publisher/, checks.first)
  end

  test "warnings count only if they are asked to" do
    bad = proxy(skew: 30)
    flags = [*@flags, "--connect", "127.0.0.1:#{bad.port}", "--only", "clock"]
    assert_equal 0, hikyaku("doctor", *flags, HOME).code
    result = hikyaku("doctor", *flags, "--strict", HOME)
    assert_equal 1, result.code
    assert_match(/^warn  clock/, result.out)
    assert_match(/^1 to look at$/, result.out)
  end

  test "what could not be looked at is said" do
    result = hikyaku("doctor", "--idle", "0", "http://127.0.0.1:#{FreePort.pick}/")
    assert_equal 1, result.code
    assert_match(/^1 failed; the rest was not checked, because nothing answers$/, result.out)
  end

  test "as JSON it is a line each" do
    out = done("doctor", *@flags, *@keys, "--json", HOME)
    findings = out.lines.map { |line| JSON.parse(line) }
    assert_equal Hikyaku::Doctor::NAMES.keys - %w[certificate plain], findings.map { |finding| finding["check"] }
    assert_equal %w[ok skip], findings.map { |finding| finding["level"] }.uniq.sort
  end

  test "the hub and the token may be in the environment, the keys in the configuration" do
    token = AccessTokens.token(:publisher, "*", aud: HOME)
    out = done("doctor", *@flags, "--only", "publisher", env: {"HIKYAKU_HUB" => HOME, "HIKYAKU_TOKEN" => token})
    assert_match(/^ok    publisher +accepted/, out)
    variables = AccessTokens::SECRETS.to_h { |role, secret| ["HIKYAKU_#{role.upcase}_KEY", secret] }
    out = done("doctor", *@flags, "--only", "publisher", "--only", "subscriber", env: {"HIKYAKU_HUB" => HOME, **variables})
    assert_match(/^ok    publisher +accepted.*\n^ok    subscriber +with a token/, out)
    tokens = %i[publisher subscriber].flat_map { |role| ["--token", AccessTokens.token(role, "*", aud: HOME)] }
    assert_match(/^ok    subscriber +with a token/, done("doctor", *@flags, *tokens, "--only", "subscriber", HOME))
  end

  test "an audience is what the configuration says" do
    result = hikyaku("doctor", *@flags, *@keys, "--resource-identifier", AWAY, "--only", "publisher", HOME)
    assert_equal 1, result.code
    assert_match(/its audience: the hub takes tokens for #{HOME}/o, result.out)
    assert_match(/^ {20,}hikyaku serve: --resource-identifier URL/, result.out)
  end

  test "what was given in a wrong way is one line, and names the option" do
    {
      %w[--idle soon] => /\A--idle: expected a number/, %w[--idle -1] => /\A--idle: expected a number/, %w[--patience 0] => /\A--patience: expected a number from/,
      %w[--connections 1] => /\A--connections: expected a number from 2/, %w[--only idel] => /there is no check "idel"; there are/,
      %w[--origin app] => /\A--origin: expected one like/, %w[--connect here] => /\A--connect: expected HOST:PORT/, %w[--http-port 0] => /\A--http-port: expected a port/,
      %w[--behind IIS] => /\A--behind: expected one of/, ["--token", "a b"] => /a token is not one/
    }.each { |flags, message| assert_match message, refused("doctor", *flags, HOME) }
    assert_match(/the hub's URL must be/, refused("doctor", "ftp://hub.test/"))
    assert_match(/not encrypted and would show the tokens.*give --insecure/, refused("doctor", *@keys, AWAY))
  end

  test "progress is a line for what takes long, and on a terminal one that goes away" do
    out = StringIO.new
    progress = Hikyaku::CLI::Doctor::Progress.new(out)
    [["reach", nil], ["idle: holding a stream", 75], ["idle: holding a stream", 74]].each { |what| progress.call(*what) }
    progress.clear
    assert_equal "hikyaku: idle: holding a stream (75 s)\n", out.string
    def out.tty? = true
    out.string = +""
    progress = Hikyaku::CLI::Doctor::Progress.new(out)
    progress.call("idle: holding a stream", 74.2)
    progress.clear
    assert_equal "\r\e[K… idle: holding a stream, 75 s\r\e[K", out.string
  end

  test "what a server says cannot move the terminal's cursor" do
    bad = proxy(fields: {"server" => "nginx\t\u{202e}evil"})
    result = hikyaku("doctor", *@flags, "--connect", "127.0.0.1:#{bad.port}", "--only", "reach", HOME)
    assert_match(/behind nginx evil$/, result.out)
  end
end
