# frozen_string_literal: true

require "test_helper"
require "hikyaku/doctor"
require_relative "free_port"
require_relative "hostile_proxy"
require_relative "hub_server"
require_relative "scripted_server"

# Hubs, what stands in front of them, and what Hikyaku::Doctor says.
#
# The hub has a public name, which leads to it only because the doctor is told what to connect to.
module Examination
  # A host that never leaves the machine, as far as a URL tells; and one that is elsewhere.
  HOME = "http://localhost/.well-known/mercure"
  AWAY = "http://hub.test/.well-known/mercure"
  SECURE = "https://hub.test/.well-known/mercure"
  # Of a machine that has other things to do: what is well must be found well.
  PATIENT = {patience: 10, idle: 0}.freeze
  # What is never there in time is awaited for no longer than it takes.
  IMPATIENT = {patience: 0.25, idle: 0}.freeze
  ONE_AT_A_TIME = Mutex.new

  def teardown
    @closing&.reverse_each { |thing| thing.respond_to?(:close) ? thing.close : thing.stop }
    super
  end

  # @return [HostileProxy] in front of a hub that goes by that URL
  def proxy(url = HOME, hubs: nil, **defects)
    hubs ||= [hub(url)]
    ending(HostileProxy.new(*hubs.map(&:port), **defects))
  end

  # @return [HubServer] shared by all tests that ask for the same
  def hub(url = HOME, **settings) = ONE_AT_A_TIME.synchronize { HubServer.shared(resource_identifier: url, heartbeat: 1, **settings) }

  # @param place [#port]
  # @param url [String]
  # @param keys [Array<Symbol>] roles whose keys are given
  # @return [Array<Hikyaku::Doctor::Finding>]
  def examine(place, url = HOME, keys: %i[publisher subscriber], secrets: AccessTokens::SECRETS, issuer: AccessTokens::ISSUER, **options)
    keys = keys.to_h { |role| [role, {issuer: issuer, key: secrets.fetch(role)}] }
    @doctor = Hikyaku::Doctor.new(url, keys: keys, connect: "127.0.0.1:#{place.port}", **PATIENT, **options)
    @doctor.run.each { |finding| refute_empty finding.advice, "nothing to change: #{finding.inspect}" if finding.level == :fail }
  end

  # @return [Array<Hikyaku::Doctor::Finding>] of one check
  def check(name, place, url = HOME, **options) = examine(place, url, only: [name], **options).select { |finding| finding.check == name }

  # The check says this, and nothing else.
  #
  # @return [Hikyaku::Doctor::Finding]
  def assert_says(level, message, findings)
    assert_equal 1, findings.size, findings.inspect
    assert_equal level, findings.first.level, findings.inspect
    assert_match message, findings.first.message
    findings.first
  end

  # @return [Hikyaku::Doctor::Finding] one of several
  def assert_among(level, message, findings)
    found = findings.find { |finding| finding.level == level && message.match?(finding.message) }
    assert found, "no #{level} like #{message.inspect} among #{findings.inspect}"
    found
  end

  def assert_well(findings)
    refute_empty findings
    assert_empty findings.select { |finding| %i[warn fail].include?(finding.level) }
  end

  # @return [Object] closed, or stopped, with the test
  def ending(thing) = thing.tap { (@closing ||= []) << thing }
end
