# frozen_string_literal: true

require "test_helper"
require "support/architecture"

# Holds the code to the table "Who may know whom" of ARCHITECTURE.md, which is read from there.
class ArchitectureTest < Minitest::Test
  A = Architecture

  def self.alone
    @alone ||= A.files.zip(A.load_alone(A.files.map { |file| [*rails_for(file), file.delete_suffix(".rb")] })).to_h
  end

  def self.rails?(file) = A.row_of(file)&.name == "rails"

  # Rails is there when its files are loaded.
  def self.rails_for(file) = rails?(file) ? ["rails", "rails/generators"] : []

  # What the libraries that a row permits load themselves is permitted with them.
  def self.permitted
    @permitted ||= begin
      rows = A.rows.reject(&:anything?)
      rows.zip(A.load_alone(rows.map { |row| libraries_of(row) })).to_h do |row, answer|
        raise "#{row.name}: #{answer[:error]}" if answer[:error]
        [row, answer[:loaded].map { |feature| A.library(feature) }.uniq]
      end
    end
  end

  def self.libraries_of(row)
    A.reach(row).flat_map(&:libraries).uniq
  end

  test "every file under lib belongs to exactly one row, and every row has files" do
    A.files.each { |file| assert_equal 1, A.rows.count { |row| row.include?(file) }, "rows for #{file}" }
    A.rows.each { |row| assert A.files.any? { |file| row.include?(file) }, "no file in row #{row.name}" }
  end

  test "rows name rows that exist, and no two know each other" do
    names = A.rows.map(&:name)
    A.rows.reject(&:anything?).each { |row| assert_empty row.known - names - ["nothing"], row.name }
    A.rows.reject(&:anything?).combination(2) do |one, other|
      refute one.may_know?(other) && other.may_know?(one), "#{one.name} and #{other.name} know each other"
    end
  end

  test "each file loads alone in a fresh Ruby, without a warning" do
    complaints = self.class.alone.flat_map do |file, answer|
      # Rails loads its files through hikyaku.rb, never alone.
      warnings = rails?(file) ? ours(answer).grep_v(/circular/) : ours(answer)
      [*answer[:error], *warnings].map { |complaint| "#{file}: #{complaint}" }
    end
    assert_empty complaints
  end

  # Parts open a class again (`class Hub`), so a class that is loaded late, by autoload or const_missing, can be there half.
  test "after hikyaku.rb every class of the library is whole, whichever part came first" do
    entries = %w[config hub server/reactor client/publisher client/event_source web server].map { |name| "hikyaku/#{name}.rb" }
    firsts = ["hikyaku", "hikyaku/hub/event", "hikyaku/client/publisher/endpoint", "hikyaku/web/token_maker"]
    firsts.zip(A.load_alone(firsts.map { |first| [first, "hikyaku"] })) do |first, answer|
      assert_nil answer[:error], first
      assert_empty ours(answer), first
      assert_empty entries - answer[:loaded].map { |feature| A.own(feature) }, first
    end
  end

  test "a file that is loaded alone brings in only what its row permits" do
    wrong = self.class.alone.flat_map do |file, answer|
      row = A.row_of(file)
      next [] if row.nil? || row.anything?

      ours, theirs = answer[:loaded].partition { |feature| A.own(feature) }
      strangers = ours.map { |feature| A.own(feature) }.reject { |other| A.reach(row).include?(A.row_of(other)) }
      libraries = theirs.map { |feature| A.library(feature) }.uniq.reject do |library|
        self.class.permitted[row].include?(library) || self.class.libraries_of(row).any? { |name| "#{library}/".start_with?("#{name}/") }
      end
      (strangers + libraries.map { |name| name[%r{\A[^/]+}] }.uniq).map { |name| "#{file} loads #{name}" }
    end
    assert_empty wrong, "not permitted by ARCHITECTURE.md:\n#{wrong.join("\n")}"
  end

  test "a require, wherever it stands in a file, names only what the file's row permits" do
    wrong = A.files.flat_map do |file|
      row = A.row_of(file) or next []
      A.requires(file).filter_map do |name, own|
        permitted = own ? row.may_know?(A.row_of(own) || row) : row.may_use?(name)
        "#{file} requires #{name}" unless permitted
      end
    end
    assert_empty wrong, "not permitted by ARCHITECTURE.md:\n#{wrong.join("\n")}"
  end

  test "only the Rails files name Rails, and only web and what stands above it name Rack" do
    A.files.each do |file|
      row = A.row_of(file)
      next if row.nil? || row.anything?

      code = File.readlines(File.join(A::LIB, file)).grep_v(/^\s*#/).join
      refute_match(/\b(?:Rails|ActionDispatch|ActiveSupport)\b/, code, file)
      refute_match(/\bRack::/, code, file) unless row.libraries.any? { |library| library.start_with?("rack") }
    end
  end

  test "nothing under ext/hikyaku/engine includes ruby.h" do
    with_ruby = Dir[File.join(A::ROOT, "ext/hikyaku/engine/**/*.{c,h}")].select { |file| File.read(file).include?("ruby.h") }
    assert_empty with_ruby
  end

  private

  def rails?(file) = self.class.rails?(file)

  # The first line of each warning about a file of ours.
  def ours(answer) = answer[:warnings].select { |warning| warning.include?(A::LIB) }.map { |warning| warning.lines.first.strip }
end
