# frozen_string_literal: true

require "test_helper"
require "support/documentation"
require "support/public_interface"

# The public interface is documented wholly: what goes in, what comes out. The rest of lib/ says why where that is not obvious.
class DocumentationTest < Minitest::Test
  test "every class and module of the public interface says what it is" do
    silent = PublicInterface::NAMES.select { |name| Documentation.registry.at(name).docstring.blank? }
    assert_empty silent - ["Hikyaku"]
  end

  test "every public method of it says what it does" do
    silent = documented_methods.reject { |method| method.name == :initialize || method.name.end_with?("=") || said?(method) || inherited(method).any? { |other| said?(other) } }
    assert_empty silent.map(&:path)
  end

  test "they name their parameters and what they return" do
    wanting = documented_methods.flat_map do |method|
      next [] if method.has_tag?(:overload)

      missing = parameters(method) - method.tags(:param).map(&:name) - readers(method.namespace)
      missing << "@return" unless method.has_tag?(:return) || method.name == :initialize
      missing.map { |each| "#{method.path}: #{each}" }
    end
    assert_empty wanting
  end

  private

  def documented_methods
    PublicInterface::NAMES.flat_map { |name| Documentation.registry.at(name).meths(inherited: false) }.select do |method|
      method.visibility == :public && !method.name.start_with?("_") && !Documentation.hidden?(method)
    end
  end

  def said?(method) = !method.docstring.all.strip.empty?

  def inherited(method)
    method.namespace.inheritance_tree(true).drop(1).filter_map do |ancestor|
      ancestor.meths(inherited: false).find { |other| other.name == method.name } if ancestor.respond_to?(:meths)
    end
  end

  # What a parameter of the same name means is said where it is read.
  def readers(namespace) = namespace.meths(inherited: false).select { |method| method.parameters.empty? && said?(method) }.map { |method| method.name.to_s }

  def parameters(method)
    return [] if method.is_attribute?

    method.parameters.map { |name, _| name.delete(":*") }.reject { |name| name.start_with?("&", "_") || name.empty? }
  end
end
