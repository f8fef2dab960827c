# frozen_string_literal: true

require "test_helper"
require "pathname"
require "tmpdir"
require "hikyaku/http/client/settings"

class HTTPClientSettingsTest < Minitest::Test
  Settings = Hikyaku::HTTP::Client::Settings
  private_constant :Settings

  # Settings, and what the message says of them.
  WRONG = {
    {user_agent: "a\r\nX: y"} => /user-agent/, {user_agent: "a\0b"} => /user-agent/, {headers: {"A" => "b\nc"}} => /field a/, {timeouts: {total: 0}} => /total/, {timeouts: {total: "5"}} => /total/,
    {timeouts: {read: nil}} => /read/, {timeouts: {reed: 1}} => /reed/, {max_connections: 0} => /max_connections/, {max_connections: nil} => /max_connections/, {limits: {heads: 1}} => /heads/,
    {retries: 1.5} => /retries is 1\.5; it has to be a whole number from 0 to 20/, {retries: 21} => /retries/, {max_connections: 2.0} => /max_connections is 2\.0; it has to be a whole number/,
    {max_redirects: 0.5} => /max_redirects/, {max_body_bytes: 1e6} => /max_body_bytes/, {max_body_bytes: Float::INFINITY} => /max_body_bytes/, {keep_idle: Float::NAN} => /keep_idle/,
    {keep_idle: Complex(1, 2)} => /keep_idle/, {max_retry_wait: "1"} => /max_retry_wait/, {timeouts: {read: Complex(1, 2)}} => /read/, {timeouts: {read: Float::NAN}} => /read/,
    {timeouts: {total: false}} => /total/, {timeouts: 5} => /timeouts/, {destinations: 5} => /destinations is a Integer; it has to have the method call/, {cookies: {}} => /cookies is a Hash; it has to have the methods parse and cookies/,
    {instrumenter: 5} => /instrumenter is a Integer; it has to have the method instrument/, {cache: 1.5} => /cache/
  }.freeze
  private_constant :WRONG

  test "what is wrong is refused before anything is asked" do
    WRONG.each { |options, message| assert_match message, assert_raises(ArgumentError, options.inspect) { Settings.new(**options) }.message }
  end

  test "of one request as well" do
    settings = Settings.new
    {{retries: 1.5} => /retries is 1\.5; it has to be a whole number/, {timeout: "1"} => /timeout/, {timeout: false} => /timeout/}.each do |options, message|
      assert_match message, assert_raises(ArgumentError, options.inspect) { settings.terms(**options) }.message
    end
  end

  test "certificates that cannot be read are told with their file, before anything is asked" do
    Dir.mktmpdir do |folder|
      File.write(File.join(folder, "none.pem"), "no certificate\n")
      {"missing.pem" => /cannot be read/, "." => /cannot be read/, "none.pem" => /no certificate/}.each do |name, reason|
        path = File.join(folder, name)
        message = assert_raises(ArgumentError, path) { Settings.new(ca_file: path) }.message
        assert_match reason, message
        assert_includes message, path.inspect
      end
      File.write(File.join(folder, "good.pem"), certificate)
      assert_equal File.join(folder, "good.pem"), Settings.new(ca_file: Pathname(folder) + "good.pem").tls_context.ca_file
    end
  end

  test "a total of nil is none" do
    assert_equal [nil, nil, 5], [{}, {total: nil}, {total: 5}].map { |timeouts| Settings.new(timeouts: timeouts).total }
    assert_equal 3, Settings.new(timeouts: {total: nil, read: 3}).timeouts.read
  end

  test "a name may be said to servers, or none" do
    assert_equal ["me/1.0 (here)", nil], ["me/1.0 (here)", nil].map { |name| Settings.new(user_agent: name).user_agent }
    assert_match %r{\Ahikyaku/}, Settings.new.user_agent
  end

  private

  def certificate
    key = OpenSSL::PKey::EC.generate("prime256v1")
    OpenSSL::X509::Certificate.new.tap do |one|
      one.subject = one.issuer = OpenSSL::X509::Name.parse("/CN=localhost")
      one.not_before, one.not_after = Time.now - 60, Time.now + 60
      one.public_key = key
      one.sign(key, "SHA256")
    end.to_pem
  end
end
