# frozen_string_literal: true

class AnswerJob < ApplicationJob
  def perform(answer, pause: 0.04)
    LanguageModel.new(pause: pause).answer(answer.question) { |token| answer.add(token) }
    answer.finish
  end
end
