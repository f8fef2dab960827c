# frozen_string_literal: true

# What the language model says to a question, a token at a time.
class Answer < ApplicationRecord
  belongs_to :user

  validates :question, presence: true, length: {maximum: 400}

  after_create_commit -> { broadcast_prepend_to user, :answers }
  after_update_commit -> { broadcast_replace_to user, :answers }, if: :finished?

  # A token is kept, then sent. A page that is made in between has it from here, and is sent it, too: by the element's id
  # Turbo knows that it is the same.
  def add(token)
    number = tokens.size
    update!(tokens: tokens + [token])
    broadcast_append_to user, :answers, target: [self, :text], partial: "answers/token", locals: {answer: self, token: token, token_counter: number}
  end

  def finish = update!(finished: true)
end
