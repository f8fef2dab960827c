# frozen_string_literal: true

require "test_helper"
require "ripper"
require "support/architecture"

# What RULES.md says about words and files, as far as a program can tell.
class StyleTest < Minitest::Test
  ROOT = Architecture::ROOT
  NOT_USED = File.read(File.join(ROOT, "RULES.md"))[/^Not used: ([a-z, ]+)\./, 1].to_s.split(", ").freeze
  NAMES = %i[on_ident on_const on_ivar on_cvar on_gvar on_label].freeze
  TRACKED = IO.popen(%w[git ls-files -z --cached --others --exclude-standard], chdir: ROOT, err: IO::NULL) { |pipe| pipe.read.split("\0") }.freeze

  test "no name in lib uses a word that RULES.md does not" do
    assert_includes NOT_USED, "channel"
    found = Architecture.files.flat_map { |file| names(file).filter_map { |line, name| "#{file}:#{line} #{name}" if not_used?(file, name) } }
    assert_empty found
  end

  test "every Ruby file begins with the frozen string comment" do
    files = TRACKED.grep(/\.rb\z/).reject { |file| File.read(File.join(ROOT, file), 100).start_with?("# frozen_string_literal: true\n", "#!") }
    assert_empty files
  end

  test "no file in lib is longer than 500 lines, and those beyond 250 are named" do
    lengths = Architecture.files.to_h { |file| [file, File.foreach(File.join(Architecture::LIB, file)).count] }
    long = lengths.select { |_, lines| lines > 250 }.sort_by(&:last)
    puts "\nlong files: #{long.map { |file, lines| "#{file} (#{lines})" }.join(", ")}" if long.any?
    assert_empty long.select { |_, lines| lines > 500 }
  end

  VULNERABLE = {"jwt" => %w[3.1.2], "puma" => %w[8.0.0 8.0.1], "rack" => %w[3.0.18 3.1.20 3.2.0 3.2.5]}.freeze

  test "no version with a known vulnerability fits, and the lock files say so, too" do
    dependencies = Gem::Specification.load(File.join(ROOT, "hikyaku.gemspec")).dependencies.to_h { |dependency| [dependency.name, dependency.requirement] }
    VULNERABLE.each { |name, versions| versions.each { |version| refute dependencies.fetch(name).satisfied_by?(Gem::Version.new(version)), "#{name} #{version}" } }
    Dir["{Gemfile,gemfiles/*.gemfile}.lock", base: ROOT].each do |lock|
      listed = File.read(File.join(ROOT, lock))[/^    hikyaku \(.+\)\n((?:      .+\n)+)/, 1].scan(/^      (\S+) \((.+)\)$/).to_h
      dependencies.each { |name, requirement| assert_equal requirement, Gem::Requirement.new(listed.fetch(name).split(", ")), "#{lock}: #{name}" }
    end
  end

  # Ruby 3.1 runs no version of these without known vulnerabilities, so only the Gemfiles for Ruby 3.2 and later exclude them.
  VULNERABLE_IN_TESTS = {"nokogiri" => "1.19.3", "sqlite3" => "2.9.5"}.freeze

  test "the Gemfiles for Ruby 3.2 and later accept no version with a known vulnerability" do
    %w[rails_8_1 turbo_rails].each do |name|
      gemfile = Bundler::Dsl.new.tap { |dsl| dsl.eval_gemfile(File.join(ROOT, "gemfiles/#{name}.gemfile")) }
      requirements = gemfile.dependencies.to_h { |dependency| [dependency.name, dependency.requirement] }
      VULNERABLE_IN_TESTS.each { |gem, version| refute requirements.fetch(gem).satisfied_by?(Gem::Version.new(version)), "#{name}: #{gem} #{version}" }
    end
  end

  test "lock files name no registry but the public ones" do
    locks = Dir["{Gemfile,gemfiles/*.gemfile}.lock", base: ROOT]
    assert_includes locks, "Gemfile.lock"
    locks.each do |lock|
      gems = File.read(File.join(ROOT, lock)).scan(/^  remote: (.+)$/).flatten
      assert_equal ["https://rubygems.org/"], gems - %w[. ..], lock
    end
    packages = File.read(File.join(ROOT, "package-lock.json")).scan(/"resolved": "([^"]+)"/).flatten
    assert_empty packages.grep_v(%r{\Ahttps://registry\.npmjs\.org/})
  end

  private

  def names(file)
    tokens = Ripper.lex(File.read(File.join(Architecture::LIB, file)))
    tokens.filter_map { |(line, _), type, name| [line, name] if NAMES.include?(type) }
  end

  # The reactors drive nio4r, and the Rails files turbo-rails and Capybara, whose words for their own things these are.
  BORROWED = {
    /selector|interests/i => ["hikyaku/server/reactor.rb", "hikyaku/server/puma_timeouts.rb", *%w[acceptor peer reactor].map { |name| "hikyaku/broker/server/#{name}.rb" }],
    /channel/i => %w[hikyaku/rails/turbo.rb hikyaku/rails/turbo/cable_class.rb hikyaku/rails/turbo/door/inquiry.rb hikyaku/rails/turbo/stand_in.rb hikyaku/rails/turbo/streams_helper.rb hikyaku/rails/railtie/turbo_streams.rb],
    /selector|channel/i => %w[hikyaku/rails/turbo/system_test_helper.rb]
  }.flat_map { |words, files| files.map { |file| [file, words] } }.to_h.freeze
  private_constant :BORROWED

  def not_used?(file, name)
    return false if BORROWED[file]&.match?(name)

    name.gsub(/([a-z])([A-Z])/, '\1_\2').downcase.scan(/[a-z]+/).any? { |word| NOT_USED.include?(word.delete_suffix("s")) }
  end
end
