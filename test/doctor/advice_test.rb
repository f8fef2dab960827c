# frozen_string_literal: true

require "test_helper"
require "hikyaku/cli"
require "hikyaku/config"
require "hikyaku/doctor"
require "stringio"

# What the doctor says to change: by names that exist, and for every defect.
class DoctorAdviceTest < Minitest::Test
  Advice = Hikyaku::Doctor::Advice
  TABLE = Advice.const_get(:TABLE)
  FILES = Dir[File.expand_path("../../lib/hikyaku/doctor/{checks/*,diagnosis}.rb", __dir__)]
  # Of the application, and not of its hub.
  OF_THE_APPLICATION = %w[hub].freeze

  test "both ways in which a hub is configured are said, before what stands in front" do
    front = Struct.new(:names).new(%w[nginx])
    assert_equal [
      "what cuts must wait longer than the hub's heartbeat (15 s unless set), or the hub must send it sooner",
      "hikyaku serve: --heartbeat SECONDS",
      "rails: config.hikyaku.heartbeat = SECONDS",
      "nginx: proxy_read_timeout 75s; and send_timeout 75s; in the hub's location"
    ], Advice.on(:idle, front)
    assert_equal Advice.on(:idle, front), Advice.on(:idle, nil)
    assert_equal Advice.on(:idle, front).first(3), Advice.on(:idle, Struct.new(:names).new(%w[Thruster]))
  end

  test "flags, variables and settings that it names exist" do
    assert_operator said("hikyaku serve").scan(/--[a-z-]+/).size, :>, 10
    assert_empty said("hikyaku serve").scan(/--[a-z-]+/).uniq.reject { |flag| help.include?("#{flag} ") || help.match?(/--\[no-\]#{flag.delete_prefix("--")}\b/) }
    settings = Hikyaku::Config::Settings::ALL
    assert_empty said("hikyaku serve").scan(/HIKYAKU_\w+/) - settings.flat_map(&:variables)
    named = said("rails").scan(/config\.hikyaku\.(\w+)/).flatten
    assert_operator named.size, :>, 8
    assert_empty named - settings.map { |setting| setting.name.to_s } - OF_THE_APPLICATION
  end

  test "what only one of both ways could change is not said to everybody" do
    options = doctor_options
    TABLE.each do |defect, lines|
      assert_empty lines.fetch("any").scan(/--[a-z-]+/) - options, "#{defect}: flags that are not the doctor's"
      refute_includes lines.fetch("any"), "config.hikyaku", defect
    end
  end

  test "each defect that a check can find is in the table" do
    found = FILES.flat_map { |file| File.read(file).scan(/["}], :([a-z_0-9]+)(?=[,)\]])/) }.flatten.map(&:to_sym).uniq
    assert_operator found.size, :>, 30
    assert_empty found - TABLE.keys
    (200..599).each { |status| assert TABLE.key?(Advice.defect_of(status)), status }
    assert_raises(KeyError) { Advice.on(:nonsense, nil) }
  end

  private

  def said(way) = TABLE.values.filter_map { |lines| lines[way] }.join("\n")

  def help = @help ||= %w[serve token].map { |command| help_of(command) }.join

  # Those that the task in Rails has as well.
  def doctor_options = help_of("doctor")[/\A.*?^Configuration/m].scan(/^ +(--[a-z-]+)/).flatten

  def help_of(command)
    out = StringIO.new
    Hikyaku::CLI.run([command, "--help"], stdin: StringIO.new, stdout: out, stderr: out, env: {})
    out.string
  end
end
