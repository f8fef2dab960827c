# frozen_string_literal: true

require "test_helper"
require "hikyaku/hub/admission"

class AdmissionTest < Minitest::Test
  def admission(...) = Hikyaku::Hub::Admission.new(...)

  test "so many are admitted in total, and another when one has left (draft-08, Subscription)" do
    admission = admission(total: 2)
    admission.admit("a")
    admission.admit(nil)
    assert_raises(Hikyaku::TooManyConnections) { admission.admit("b") }
    admission.release("a")
    admission.admit("b")
    assert_raises(Hikyaku::TooManyConnections) { admission.admit("c") }
  end

  test "one address may have so many, and others are not its concern" do
    admission = admission(per_address: 2)
    2.times { admission.admit("a") }
    error = assert_raises(Hikyaku::TooManyConnections) { admission.admit("a") }
    assert_match(/your address holds 2/, error.message)
    admission.admit("b")
    admission.release("a")
    admission.admit("a")
  end

  test "who has no address counts only in total" do
    admission = admission(per_address: 1)
    5.times { admission.admit(nil) }
  end

  test "who is refused is not counted" do
    admission = admission(total: 1)
    admission.admit("a")
    3.times { assert_raises(Hikyaku::TooManyConnections) { admission.admit("a") } }
    admission.release("a")
    admission.admit("a")
  end
end
