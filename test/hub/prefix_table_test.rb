# frozen_string_literal: true

require "test_helper"
require "hikyaku/hub/prefix_table"

class PrefixTableTest < Minitest::Test
  def setup = @table = Hikyaku::Hub::PrefixTable.new

  def candidates(string)
    [].tap { |found| @table.each_candidate(string) { |thing| found << thing } }
  end

  test "what stands under a beginning of the string is found" do
    @table.add("", :root)
    @table.add("/a/", :a)
    @table.add("/a/b/", :ab)
    @table.add("/c/", :c)
    assert_equal %i[a ab root], candidates("/a/b/1").sort
    assert_equal [:root], candidates("/")
    assert_equal [:root], candidates("")
  end

  test "prefixes are bytes" do
    @table.add("/é/", :e)
    assert_equal [:e], candidates("/é/1")
    assert_equal [:e], candidates("/é/1".b)
  end

  test "what was removed is not found, and leaves nothing behind" do
    @table.add("/a/", :one)
    @table.add("/a/", :two)
    @table.remove("/a/", :one)
    @table.remove("/a/", :unknown)
    @table.remove("/b/", :two)
    assert_equal [:two], candidates("/a/1")
    @table.remove("/a/", :two)
    assert @table.empty?
  end
end
