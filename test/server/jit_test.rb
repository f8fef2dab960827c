# frozen_string_literal: true

require "test_helper"
require "open3"

# Ruby's compiler, for processes that are servers.
class ServerJITTest < Minitest::Test
  # In a process of its own: it cannot be switched off.
  def enabled(before, *flags)
    program = "#{before}; require 'hikyaku/server/jit'; p Hikyaku::Server::JIT.enable"
    out, status = Open3.capture2(RbConfig.ruby, *flags, "-I#{File.expand_path("../../lib", __dir__)}", "-e", program)
    assert_predicate status, :success?
    out.lines.map(&:chomp)
  end

  test "it is switched on where a running process can do that" do
    stub = "module RubyVM::YJIT; def self.enabled? = !!@on; def self.enable = (puts 'enabled'; @on = true); end"
    assert_equal %w[enabled true], enabled(stub)
    assert_equal %w[true], enabled("#{stub}; RubyVM::YJIT.instance_variable_set(:@on, true)")
  end

  test "where it cannot, it stays as it was" do
    return assert(RubyVM::YJIT.respond_to?(:enable)) if RUBY_VERSION >= "3.3"
    assert_equal %w[false], enabled("")
    assert_equal %w[true], enabled("", "--yjit") if defined?(RubyVM::YJIT)
  end

  test "a Ruby without it is as good" do
    assert_equal %w[false], enabled("RubyVM.send(:remove_const, :YJIT) if defined?(RubyVM::YJIT)")
  end
end
