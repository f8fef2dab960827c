# frozen_string_literal: true

# One browser of a user. With it go the streams that this browser has open, in all its tabs.
class SignIn < ApplicationRecord
  belongs_to :user

  after_destroy_commit -> { Hikyaku.disconnect(subject: subject, revoke: true) }

  # @return [String] whose tokens for the hub these are
  def subject = "sign-in-#{id}"
end
