# frozen_string_literal: true

class AnswersController < ApplicationController
  def index
    @answers = current_user.answers.order(id: :desc).limit(10)
  end

  def create
    answer = current_user.answers.create(question: params.require(:answer)[:question])
    AnswerJob.perform_later(answer) if answer.persisted?
    render turbo_stream: turbo_stream.replace("new_answer", partial: "answers/form", locals: {error: answer.errors.full_messages.first})
  end
end
