# frozen_string_literal: true

class SummariesController < ApplicationController
  rate_limit to: 10, within: 1.minute, by: -> { current_user.id }

  def create
    room = current_user.rooms.find(params[:room_id])
    SummaryJob.perform_later(room.messages.pluck(:name), current_user.id, hikyaku_correlation)
    head :accepted
  end
end
