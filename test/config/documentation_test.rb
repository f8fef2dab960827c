# frozen_string_literal: true

require "test_helper"
require "hikyaku/config"

# docs/configuration.md has a table for each group of settings. What it says is what the code does.
class ConfigDocumentationTest < Minitest::Test
  Settings = Hikyaku::Config::Settings
  DOCUMENT = File.read(File.expand_path("../../docs/configuration.md", __dir__))

  def flag_of(setting)
    return "" unless setting.flag?
    return "`--#{setting.flags.first}`" if setting.switch?
    "`--#{setting.flags.first} #{setting.type.placeholder}`".gsub("|", "\\|")
  end

  def row_of(setting)
    variables = setting.variables.reject { |variable| variable.end_with?(*setting.names.drop(1).map { |name| name.to_s.upcase }) }
    cells = [flag_of(setting), variables.map { |variable| "`#{variable}`" }.join(", "), "`#{setting.name}`", setting.default_text, "#{setting.help}."]
    "| #{cells.join(" | ").squeeze(" ")} |".gsub("|  |", "| |")
  end

  Settings::ALL.each do |setting|
    test "the document has the flag, variables, key, default and meaning of #{setting.name}" do
      assert_includes DOCUMENT.lines.map(&:chomp), row_of(setting)
    end
  end

  test "the document has no setting that does not exist, and each under its heading" do
    documented = DOCUMENT.split(/^## /).drop(1).to_h { |section| [section.lines.first.chomp, section.scan(/^\|(?:[^|\\]|\\.)*\|[^|]*\| `(\w+)` \|/).flatten] }
    Settings::ALL.group_by(&:group).each do |group, settings|
      assert_equal settings.map { |setting| setting.name.to_s }, documented[group]
    end
    assert_equal Settings::ALL.size, documented.values.sum(&:size)
  end

  test "every setting has a sentence, and no flag or variable is given twice" do
    Settings::ALL.each { |setting| assert_match(/\A[A-Z].+[^.]\z/, setting.help) }
    flags = Settings::ALL.flat_map { |setting| setting.flags.uniq }
    assert_equal flags.uniq, flags
    variables = Settings::ALL.flat_map(&:variables)
    assert_equal variables.uniq, variables
  end
end
