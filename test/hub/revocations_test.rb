# frozen_string_literal: true

require "test_helper"
require "tmpdir"
require "hikyaku/hub/revocations"

class RevocationsTest < Minitest::Test
  def setup = @revocations = Hikyaku::Hub::Revocations.new(limit: 2)

  test "older tokens of the subject are covered, newer ones and others' are not" do
    @revocations.add("alice", 100.5)
    [0.0, 99.0, 99.9, 100.000001, 100.4, 100.5].each { |issued_at| assert @revocations.cover?("alice", issued_at), issued_at }
    [100.500001, 100.9, 101.0].each { |issued_at| refute @revocations.cover?("alice", issued_at), issued_at }
    refute @revocations.cover?("bob", 1.0)
    refute @revocations.cover?(nil, 1.0)
  end

  test "one that says it in whole seconds is covered in the whole second of the revocation" do
    @revocations.add("alice", 100.5)
    assert @revocations.cover?("alice", 100.0)
    @revocations.add("alice", 101.0)
    assert @revocations.cover?("alice", 101.0)
    refute @revocations.cover?("alice", 102.0)
  end

  test "a token that does not say when it was issued is covered" do
    @revocations.add("alice", 100.0)
    assert @revocations.cover?("alice", nil)
  end

  test "a later revocation counts, and the oldest are dropped" do
    @revocations.add("alice", 1.0)
    @revocations.add("bob", 2.0)
    @revocations.add("alice", 3.0)
    @revocations.add("carol", 4.0)
    refute @revocations.cover?("bob", 0.0)
    assert @revocations.cover?("alice", 2.0)
  end

  test "a revocation by a clock that was put back takes nothing of the one before back, after a restart neither" do
    Dir.mktmpdir do |folder|
      one = Hikyaku::Hub::Revocations.new(path: "#{folder}/revocations")
      [100.5, 40.5].each do |at|
        one.add("alice", at)
        one.keep("alice")
      end
      again = Hikyaku::Hub::Revocations.new(path: "#{folder}/revocations")
      [one, again].each { |revocations| assert revocations.cover?("alice", 90.25) }
      [one, again].each(&:close)
    end
  end

  test "what is kept in a file is there after a restart, and a torn line is not" do
    Dir.mktmpdir do |folder|
      path = "#{folder}/revocations"
      one = Hikyaku::Hub::Revocations.new(path: path)
      {"alice" => 100.25, "bob é" => 101.1234567, "alice\n" => 102.0}.each do |subject, at|
        one.add(subject, at)
        one.keep(subject)
      end
      one.add("never kept", 103.0)
      File.write(path, "104.000000 Y2Fyb2w", mode: "a")
      2.times do
        again = Hikyaku::Hub::Revocations.new(path: path)
        assert again.cover?("alice", 100.25)
        refute again.cover?("alice", 100.26)
        assert again.cover?("bob é", 101.1234567), "rounded up"
        assert again.cover?("alice\n", 101.5)
        refute again.cover?("never kept", 1.0)
        refute again.cover?("carol", 1.0)
        again.close
      end
      assert_equal 0o100600, File.stat(path).mode
    end
  end

  test "a subject that is revoked again and again takes one line after a restart" do
    Dir.mktmpdir do |folder|
      path = "#{folder}/revocations"
      one = Hikyaku::Hub::Revocations.new(path: path)
      50.times do |number|
        one.add("alice", number.to_f)
        one.keep("alice")
      end
      assert_equal 50, File.readlines(path).size
      Hikyaku::Hub::Revocations.new(path: path).close
      assert_equal 1, File.readlines(path).size
    end
  end

  test "a disk that does not take it is told, and the revocation holds" do
    skip "there is no /dev/full" unless File.exist?("/dev/full")
    Dir.mktmpdir do |folder|
      one = Hikyaku::Hub::Revocations.new(path: "#{folder}/revocations")
      one.instance_variable_set(:@file, File.open("/dev/full", "a").tap { |file| file.sync = true })
      one.add("alice", 100.0)
      assert_match(/revocations cannot be kept in .*No space left/, assert_raises(Hikyaku::StorageFailed) { one.keep("alice") }.message)
      assert one.cover?("alice", 99.0)
    end
  end
end
