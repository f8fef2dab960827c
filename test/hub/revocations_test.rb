# frozen_string_literal: true

require "test_helper"
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
end
