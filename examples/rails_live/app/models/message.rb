# frozen_string_literal: true

class Message < ApplicationRecord
  # No counter_cache beside it: with both, Rails touches without callbacks, and the list would not be refreshed.
  belongs_to :conversation, touch: true
  belongs_to :user

  validates :body, presence: true, length: {maximum: 2000}

  broadcasts_to :conversation
end
