# frozen_string_literal: true

class Conversation < ApplicationRecord
  has_many :messages, -> { order(:id) }, dependent: :destroy

  validates :title, presence: true, length: {maximum: 80}, uniqueness: true

  # The list of conversations is morphed into what it has become: a new one, one more message.
  broadcasts_refreshes_to ->(_conversation) { "conversations" }
end
