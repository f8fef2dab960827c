# frozen_string_literal: true

require "test_helper"
require "hikyaku/server"
require "support/examination"
require "tmpdir"

# All checks together; each has a test of its own below test/doctor.
class DoctorTest < Minitest::Test
  include Examination

  NAMES = Hikyaku::Doctor::NAMES.keys

  test "of a hub where all is well nothing is complained about, and everything is looked at" do
    findings = examine(hub, idle: 3, origin: "http://localhost")
    assert_well findings
    assert_equal NAMES - %w[certificate plain], findings.map(&:check).uniq
    assert_equal %w[discovery], findings.select { |finding| finding.level == :skip }.map(&:check)
    assert_nil @doctor.stopped
    assert_equal HOME, @doctor.url
  end

  test "a proxy that passes everything on changes nothing" do
    findings = examine(proxy, idle: 3, skip: %w[idle])
    assert_well findings
    refute_includes findings.map(&:check), "idle"
  end

  test "without keys it looks at what anybody sees, and says what it did not look at" do
    findings = examine(hub, keys: [], idle: 2)
    assert_well findings
    assert_equal %w[discovery cors publisher processes], findings.select { |finding| finding.level == :skip }.map(&:check)
  end

  test "without keys, and where readers need a token, it says what to give" do
    findings = examine(hub(HOME, anonymous: false), keys: [])
    assert_well findings
    skipped = findings.select { |finding| finding.level == :skip }
    assert_equal %w[discovery cors publisher subscriber headers flush buffering compression reconnection processes idle], skipped.map(&:check)
    skipped.find { |finding| finding.check == "flush" }.then { |finding| assert_match(/readers need a token; give --subscriber-key/, finding.message) }
  end

  test "each finding is given as soon as it is there, and progress is told" do
    given = []
    progress = []
    doctor = Hikyaku::Doctor.new(HOME, connect: "127.0.0.1:#{hub.port}", progress: ->(*what) { progress << what }, idle: 1, patience: 10, only: %w[http2 idle])
    returned = doctor.run { |finding| given << finding }
    assert_equal returned, given
    assert_equal %w[http2 idle], given.map(&:check)
    assert_includes progress, ["http2", nil]
    assert(progress.any? { |what, seconds| what == "idle: holding a stream" && seconds.between?(0, 1) })
  end

  test "what nobody asked for is done all the same where the rest needs it, and said when it is bad" do
    assert_equal %w[reconnection], examine(hub, only: %w[reconnection]).map(&:check)
    findings = examine(hub, only: %w[reconnection], secrets: {publisher: "x" * 32, subscriber: "y" * 32})
    assert_equal [["publisher", :fail], ["subscriber", :fail], ["reconnection", :skip]], findings.map { |finding| [finding.check, finding.level] }
  end

  test "where nothing answers there is nothing to check" do
    port = FreePort.pick
    findings = Hikyaku::Doctor.new("http://127.0.0.1:#{port}/.well-known/mercure").then do |doctor|
      doctor.run.tap { assert_equal "nothing answers", doctor.stopped }
    end
    assert_says :fail, /127\.0\.0\.1:#{port}.* cannot be reached: .*refused/, findings
    assert_says :fail, /cannot be found/, Hikyaku::Doctor.new("http://hub.invalid/").run
  end

  test "tokens do not travel readable unless that is allowed" do
    error = assert_raises(Hikyaku::ConfigError) { examine(hub(AWAY), AWAY) }
    assert_match(/not encrypted and would show the tokens/, error.message)
    assert_well examine(hub(AWAY), AWAY, insecure: true, only: %w[publisher])
    assert_well examine(hub(AWAY), AWAY, keys: [], only: %w[subscriber])
  end

  test "a Unix socket is as good as a URL, but for what takes one" do
    Dir.mktmpdir do |folder|
      socket = "#{folder}/hub.sock"
      server = Hikyaku::Server.new(Hikyaku::Config.new(dev: true, listen: "unix:#{socket}", engine: HubServer::ENGINE), logger: Logger.new(IO::NULL)).start
      key = {issuer: "hikyaku", key: Hikyaku::Config::Settings::DEVELOPMENT_SECRET}
      findings = Hikyaku::Doctor.new("unix:#{socket}", keys: {publisher: key, subscriber: key}, **PATIENT).run
      assert_well findings
      assert_equal %w[discovery cors idle], findings.select { |finding| finding.level == :skip }.map(&:check)
    ensure
      server&.stop
    end
  end

  test "options that make no sense are refused" do
    {
      {idle: -1} => /idle: expected a number/, {patience: 0} => /patience/, {connections: 1} => /connections: expected a number from 2/,
      {connections: 101} => /connections/, {only: %w[idel]} => /no check "idel"; there are certificate/, {skip: %w[x]} => /no check "x"/,
      {origin: "www.example.com"} => /origin: expected/, {origin: "https://a.example/b"} => /origin/, {connect: "nowhere"} => /connect: expected HOST:PORT/,
      {behind: %w[IIS]} => /behind: expected one of Cloudflare, nginx/, {idel: 1} => /no option idel; it has idle/, {tokens: ["a b"]} => /a token is not one/
    }.each do |options, message|
      error = assert_raises(Hikyaku::ConfigError, options.inspect) { Hikyaku::Doctor.new(HOME, **options) }
      assert_match message, error.message
    end
    assert_raises(Hikyaku::ConfigError) { Hikyaku::Doctor.new("ftp://hub.test/") }
  end

  test "neither keys nor tokens are shown" do
    doctor = Hikyaku::Doctor.new(HOME, keys: {publisher: {issuer: "me", key: "s3cret" * 6}}, tokens: %w[t0ken])
    refute_match(/s3cret|t0ken/, doctor.inspect)
    credentials = doctor.instance_variable_get(:@visit).credentials
    refute_match(/s3cret|t0ken/, credentials.inspect)
    refute_match(/s3cret/, Hikyaku::Doctor::Credentials::Signer.new(issuer: "me", key: "s3cret").inspect)
  end

  test "the guide says of each check what it looks at" do
    guide = File.read(File.expand_path("../docs/guides/doctor.md", __dir__))
    assert_equal NAMES.sort, guide.scan(/^\| (`.*?`) \|/).join.scan(/`(\w+)`/).flatten.sort
    Hikyaku::Doctor::Front::NAMES.each { |name| assert_includes guide, name }
  end

  test "a finding has a level that exists, and as a Hash only what it has" do
    finding = Hikyaku::Doctor::Finding.new(check: "idle", level: :ok, message: "it stays", measured: {seconds: 1.5})
    assert_equal({check: "idle", level: "ok", message: "it stays", measured: {seconds: 1.5}}, finding.to_h)
    assert_raises(ArgumentError) { Hikyaku::Doctor::Finding.new(check: "idle", level: :good, message: "") }
  end
end
