# frozen_string_literal: true

class ExportsController < ApplicationController
  def index
    @exports = current_user.exports.order(id: :desc).limit(10)
  end

  def create
    ExportJob.perform_later(current_user.exports.create!(total: 25))
    head :no_content
  end
end
