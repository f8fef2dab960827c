# frozen_string_literal: true

# Something that takes a while, and says how far it has come.
class Export < ApplicationRecord
  belongs_to :user

  after_create_commit -> { broadcast_prepend_to user, :exports }
  # In the order in which the pieces are done: one after the other, by the job that does them.
  after_update_commit -> { broadcast_replace_to user, :exports }

  def finished? = done == total
end
