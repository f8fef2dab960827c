# frozen_string_literal: true

require "test_helper"
require "yard"
require "support/architecture"
require "support/public_interface"

# Every public method is documented, and those of the public interface wholly: what goes in, what comes out.
class DocumentationTest < Minitest::Test
  def self.registry
    @registry ||= begin
      YARD::Logger.instance.level = YARD::Logger::ERROR
      YARD::Registry.clear
      YARD.parse(Dir[File.join(Architecture::LIB, "**/*.rb")])
      YARD::Registry
    end
  end

  test "every class and module says what it is" do
    silent = self.class.registry.all(:class, :module).select { |object| open?(object) && object.docstring.blank? }
    assert_empty silent.map(&:path) - ["Hikyaku"]
  end

  test "every public method says what it does, or carries out a contract that does" do
    silent = public_methods_of_lib.reject { |method| method.name == :initialize || said?(method) || inherited(method).any? { |other| said?(other) } }
    assert_empty silent.map(&:path)
  end

  test "methods of the public interface name their parameters and what they return" do
    wanting = public_methods_of_lib.select { |method| PublicInterface::NAMES.include?(method.namespace.path) }.flat_map do |method|
      missing = parameters(method) - method.tags(:param).map(&:name) - readers(method.namespace)
      missing << "@return" unless method.has_tag?(:return) || method.name == :initialize || method.has_tag?(:overload)
      missing.map { |each| "#{method.path}: #{each}" }
    end
    assert_empty wanting
  end

  private

  def public_methods_of_lib
    self.class.registry.all(:method).select do |method|
      method.visibility == :public && open?(method.namespace) && !method.name.start_with?("_") && !hidden?(method)
    end
  end

  # `private_constant`, or "@api private" on the way up: not for users.
  def open?(object)
    until object.root?
      return false if object.visibility == :private || object.tag(:api)&.text == "private"
      object = object.namespace
    end
    true
  end

  def hidden?(method) = method.tag(:api)&.text == "private" || %i[inspect pretty_print to_s == eql? hash].include?(method.name)

  def said?(method) = !method.docstring.all.strip.empty?

  def inherited(method)
    method.namespace.inheritance_tree(true).drop(1).filter_map do |ancestor|
      ancestor.meths(inherited: false).find { |other| other.name == method.name } if ancestor.respond_to?(:meths)
    end
  end

  # What a parameter of the same name means is said where it is read.
  def readers(namespace) = namespace.meths(inherited: false).select { |method| method.is_attribute? && said?(method) }.map { |method| method.name.to_s }

  def parameters(method)
    return [] if method.is_attribute?

    method.parameters.map { |name, _| name.delete(":*") }.reject { |name| name.start_with?("&", "_") || name.empty? }
  end
end
