# frozen_string_literal: true

require "test_helper"
require "fileutils"
require "tmpdir"
require_relative "tokens"

# Keys in files, which are replaced while the hub runs.
class FileKeysTest < Minitest::Test
  include Tokens

  OTHER = OpenSSL::PKey::EC.generate("prime256v1")

  class Log
    attr_reader :errors

    def initialize = @errors = []

    def error(line) = @errors << line

    def warn(_line) = nil

    def info = nil
  end

  def setup
    @folder = Dir.mktmpdir
    @now = NOW
    @log = Log.new
  end

  def teardown = FileUtils.rm_rf(@folder)

  def path = File.join(@folder, "keys")

  # As whoever does it well: the file is never half there.
  def replace(content, time = nil)
    File.write("#{path}.new", content)
    File.utime(time, time, "#{path}.new") if time
    File.rename("#{path}.new", path)
  end

  def hub(**settings) = @hub ||= authorization(issuer(**(settings.empty? ? {jwks: "file:#{path}"} : settings)), clock: -> { @now }, logger: @log)

  def accepts?(key, alg = "ES256")
    !hub.access(token(key, alg: alg), :publisher).nil?
  rescue Hikyaku::InvalidToken
    false
  end

  test "a file that was replaced is read again within a second" do
    replace(jwks(jwk(P256)))
    assert accepts?(P256)
    refute accepts?(OTHER)
    @now += 10
    replace(jwks(jwk(OTHER)))
    assert_equal [false, true], [accepts?(P256), accepts?(OTHER)]
  end

  test "it is looked at once a second at most" do
    replace(jwks(jwk(P256)))
    assert accepts?(P256)
    @now += 10
    assert accepts?(P256)
    replace(jwks(jwk(OTHER)))
    @now += 0.9
    assert accepts?(P256)
    @now += 0.2
    refute accepts?(P256)
  end

  test "a file that is written in place, and one with the size and the time of that before, are read again" do
    old = Time.now - 1_000
    replace(jwks(jwk(P256)), old)
    assert accepts?(P256)
    @now += 10
    replace(jwks(jwk(OTHER)), old)
    assert_equal File.size(path), jwks(jwk(OTHER)).bytesize
    assert accepts?(OTHER)
    @now += 10
    File.write(path, jwks(jwk(P256)))
    assert accepts?(P256)
    @now += 10
    File.write(path, jwks(jwk(OTHER)))
    assert accepts?(OTHER)
  end

  test "a new content that cannot be used is logged once, and the keys stay in force until there are better ones" do
    replace(jwks(jwk(P256)))
    assert accepts?(P256)
    ["{", "{\"keys\":[]}", "", jwks("kty" => "oct", "k" => encode("short")), "short", nil].each_with_index do |content, i|
      content ? replace(content) : File.unlink(path)
      3.times do
        @now += 10
        assert accepts?(P256), content.inspect
      end
      assert_equal i + 1, @log.errors.size, @log.errors.inspect
      assert_match(/\Ajwks of issuer .*stay in force\z/, @log.errors.last)
    end
    replace(jwks(jwk(OTHER)))
    @now += 10
    assert_equal [false, true], [accepts?(P256), accepts?(OTHER)]
    assert_equal 6, @log.errors.size
  end

  test "what stands in place of a JWK Set becomes no secret, neither at the start nor later" do
    page = "<html><head><title>502 Bad Gateway</title></head></html>"
    set = jwks(jwk(P256))
    replace(page)
    assert_match(/\Ajwks of issuer .*: it is neither a JWK Set nor PEM text\z/, assert_raises(Hikyaku::ConfigError) { hub }.message)
    replace(set)
    assert accepts?(P256)
    [page, "\uFEFF#{set}", "[#{set}]"].each do |content|
      @now += 10
      replace(content)
      assert_equal [true, false], [accepts?(P256), accepts?(content.b, "HS256")], content
    end
    assert_equal 3, @log.errors.size, @log.errors.inspect
  end

  test "PEM text and secrets in files are read again, too" do
    replace(public_pem("ES256"))
    hub(publisher_key: "file:#{path}")
    assert accepts?(P256)
    @now += 10
    replace(OTHER.public_to_pem)
    assert_equal [false, true], [accepts?(P256), accepts?(OTHER)]
    @now += 10
    replace("#{PUBLISHER_SECRET}\n")
    assert_equal [false, true], [accepts?(OTHER), accepts?(PUBLISHER_SECRET, "HS256")]
  end

  test "it is read again at once when that is asked for" do
    replace(jwks(jwk(P256)))
    assert accepts?(P256)
    replace(jwks(jwk(OTHER)))
    hub.reload
    assert_equal [false, true], [accepts?(P256), accepts?(OTHER)]
  end

  test "who asks is told when keys have changed, and only then; what was decided is good until then" do
    replace(jwks(jwk(P256)))
    changes = 0
    hub.on_change { changes += 1 }
    basis = hub.access(token(P256, alg: "ES256"), :publisher).basis
    assert_predicate basis, :good?
    replace(jwks(jwk(P256), jwk(OTHER)))
    hub.reload
    assert_equal 1, changes
    assert_predicate basis, :good?, "the key is still there"
    hub.reload
    replace("{")
    hub.reload
    assert_equal 1, changes
    replace(jwks(jwk(OTHER)))
    hub.refresh
    @now += 10
    hub.refresh
    assert_equal 2, changes
    refute_predicate basis, :good?
    refute_includes basis.inspect, "BEGIN"
  end

  test "a clock that is set back does not stop it" do
    replace(jwks(jwk(P256)))
    assert accepts?(P256)
    @now -= 5
    replace(jwks(jwk(OTHER)))
    assert accepts?(OTHER)
  end
end
