# frozen_string_literal: true

require "support/integration"
require "support/thruster"
require "hikyaku/doctor"

# The hub behind the real Thruster: with what docs/guides/deployment.md says nothing is found, without it that is.
class ThrusterTest < Integration::Test
  include AccessTokens

  def setup
    super
    skip("the gem thruster has no program for this platform") unless Thruster.available?
  end

  # @param settings [Hash{String => String}] of Thruster
  def examine(settings, only:, idle: 0)
    thruster = ending(Thruster.new(settings, [*Integration::HIKYAKU, "serve", "--anonymous", "--heartbeat", "1", "--issuer", ISSUER, "--trusted-proxy", "127.0.0.1",
      "--engine", RunningHub::ENGINE, *SECRETS.flat_map { |role, secret| ["--#{role}-key", secret] }]))
    keys = SECRETS.to_h { |role, secret| [role, {issuer: ISSUER, key: secret}] }
    Hikyaku::Doctor.new(thruster.url, keys: keys, idle: idle, patience: 10, only: only).run
  end

  test "with the settings of the guide nothing is found" do
    findings = examine(Thruster.guide, only: Hikyaku::Doctor::NAMES.keys, idle: 4)
    assert_empty findings.select { |finding| %i[warn fail].include?(finding.level) }
    assert_equal %w[Thruster], findings.find { |finding| finding.check == "reach" }.measured[:front]
  end

  test "with its own settings streams are compressed, and cut after a time" do
    findings = examine({"HTTP_WRITE_TIMEOUT" => "3"}, only: %w[compression idle], idle: 20)
    compression, idle = findings
    assert_equal [:warn, :fail], findings.map(&:level)
    assert(compression.advice.any? { |line| line.include?("GZIP_COMPRESSION_DISABLE_ON_AUTH=true") })
    assert_match(/though comments came each .*: its whole time is limited/, idle.message)
    assert(idle.advice.any? { |line| line.include?("HTTP_WRITE_TIMEOUT=0") })
  end
end
