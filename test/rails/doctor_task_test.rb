# frozen_string_literal: true

require "test_helper"
require "minitest/mock"
require "rake"
require "shellwords"
require "stringio"
require "support/rails_application"
require "support/rails_settings"
require "support/examination"
require "hikyaku/rails/railtie/doctor_task"

# `bin/rails hikyaku:doctor`, without Rails' own start.
class DoctorTaskTest < Minitest::Test
  include RailsSettings
  include Examination

  PAIR = %w[--only publisher --only subscriber].freeze
  KEYS = {issuer: AccessTokens::ISSUER, **AccessTokens::SECRETS.transform_keys { |role| :"#{role}_key" }}.freeze
  BOTH_WELL = /\Aok    publisher +accepted.*\nok    subscriber +with a token.*\n\n2 well\n\z/
  Result = Struct.new(:code, :out, :err)

  test "the application's hub is looked at, with the application's keys, which nobody sees" do
    result = doctor(settings(resource_identifier: HOME, **KEYS), *PAIR)
    assert_equal 0, result.code, result.to_s
    assert_match BOTH_WELL, result.out
    assert_secret result
  end

  test "what is wrong has code 1, and shows no key either" do
    result = doctor(settings(resource_identifier: HOME, **KEYS, publisher_key: "another key of the publishers, and long enough"), "--only", "publisher")
    assert_equal 1, result.code, result.to_s
    assert_match(/^FAIL  publisher/, result.out)
    assert_match(/^ +rails: config\.hikyaku\.publisher_key, or hikyaku: \{publisher_key: …\} in the credentials; without them, the same secret_key_base$/, result.out)
    assert_secret result, "another key"
  end

  test "another hub is given by its URL, and says itself who it is" do
    settings = settings(resource_identifier: AWAY, **KEYS)
    assert_match BOTH_WELL, doctor(settings, *PAIR, url: HOME).out
    out = doctor(settings, "--only", "publisher", "--insecure").out
    assert_match(/^FAIL  publisher/, out, "the application's own is of another name")
    assert_match(/^ +rails: config\.hikyaku\.resource_identifier = "URL"$/, out)
    # Where the application publishes to is not where its clients find the hub.
    out = doctor(settings(resource_identifier: HOME, **KEYS), "--only", "reach", env: {"HIKYAKU_HUB" => "http://127.0.0.1/hub"}).out
    assert_match(/\Aok    reach +#{HOME} /o, out)
  end

  test "a hub in another process is looked at where clients find it, by what the application was told to talk to it" do
    in_environment("production") do
      result = doctor(remote(token: token, resource_identifier: HOME), "--only", "publisher")
      assert_match(/\Aok    publisher +accepted/, result.out, result.to_s)
      assert_match(/\Aok    publisher +accepted/, doctor(remote(token: -> { token }, resource_identifier: HOME), "--only", "publisher").out)
      assert_secret result, token
    end
  end

  test "the token that was configured for the application's hub is shown to no other" do
    in_environment("production") do
      result = doctor(remote(token: token, resource_identifier: AWAY), "--only", "publisher", url: HOME)
      # This one would take it; the keys that are derived from the application's secret it does not know.
      assert_match(/\AFAIL  publisher/, result.out, result.to_s)
    end
  end

  test "where nobody has said under which URL clients find the hub, it is asked for" do
    in_environment("production") do
      [settings(**KEYS), remote(token: token)].each do |settings|
        result = doctor(settings)
        assert_equal [2, ""], [result.code, result.out]
        assert_match(/\Ahikyaku: it is not known under which URL clients find the hub: set config\.hikyaku\.resource_identifier, or give it: /, result.err)
        assert_match BOTH_WELL, doctor(settings(**KEYS), *PAIR, url: HOME).out
      end
    end
  end

  test "wrong options have code 2, and what is said of them leads on" do
    {
      "--iddle 3" => "unknown option --iddle; did you mean --idle?", "--wrong" => "unknown option --wrong; see HIKYAKU_DOCTOR=--help bin/rails hikyaku:doctor",
      "--publisher-key x" => "unknown option --publisher-key", "--token 'eyJsecret" => "HIKYAKU_DOCTOR: a quote is opened and not closed",
      "http://localhost/" => "unexpected", "--idle soon" => "--idle: expected a number of seconds"
    }.each do |options, message|
      result = run_task(settings(resource_identifier: HOME, **KEYS), options, HOME)
      assert_equal [2, ""], [result.code, result.out], options
      assert_includes result.err, message
      refute_includes result.err, "eyJsecret"
    end
    help = run_task(settings(resource_identifier: HOME, **KEYS), "--help", nil)
    assert_equal 0, help.code
    assert_match(/\AUsage: HIKYAKU_DOCTOR=.* bin\/rails "hikyaku:doctor\[URL\]"$/, help.out)
    refute_match(/--publisher-key|--config|HIKYAKU_HUB/, help.out)
  end

  test "the task hands over its argument, and ends with the code" do
    tasks = Rake.with_application do |rake|
      rake.define_task(Rake::Task, :environment)
      load File.expand_path("../../lib/hikyaku/rails/railtie/tasks.rake", __dir__)
    end
    seen = nil
    Hikyaku::Railtie::DoctorTask.stub(:run, ->(settings, url) { (seen = [settings, url]) && 1 }) do
      ended = assert_raises(SystemExit) { tasks["hikyaku:doctor"].invoke(HOME) }
      assert_equal 1, ended.status
    end
    assert_equal [Hikyaku::Railtie.mount.settings, HOME], seen
  end

  private

  def doctor(settings, *options, url: nil, env: {})
    run_task(settings, [*options, "--idle", "0", "--patience", "10", "--connect", "127.0.0.1:#{hub.port}"].shelljoin, url, env)
  end

  def run_task(settings, options, url, env = {})
    out, err = StringIO.new, StringIO.new
    code = Hikyaku::Railtie::DoctorTask.run(settings, url, stdout: out, stderr: err, env: {"HIKYAKU_DOCTOR" => options, **env})
    Result.new(code, out.string, err.string)
  end

  # An application whose hub is in another process.
  def remote(token:, **given) = settings(hub: {url: "http://127.0.0.1:9/.well-known/mercure", token: token}, **given)

  def token = @token ||= AccessTokens.token(:publisher, "*", aud: HOME)

  def assert_secret(result, *more)
    said = "#{result.out}#{result.err}"
    [*AccessTokens::SECRETS.values, *more].each { |secret| refute_includes said, secret }
    refute_match(/eyJ/, said)
  end
end
