# frozen_string_literal: true

class User < ApplicationRecord
  has_many :sign_ins, dependent: :destroy
  has_many :messages, dependent: :destroy
  has_many :exports, dependent: :destroy
  has_many :answers, dependent: :destroy

  validates :name, presence: true, length: {maximum: 40}
end
