# frozen_string_literal: true

class MessagesController < ApplicationController
  rate_limit to: 60, within: 1.minute, by: -> { current_user.id }

  def create
    room = current_user.rooms.find(params[:room_id])
    message = room.say(current_user, params[:text])
    return render json: {error: "A message has 1 to 500 letters."}, status: :unprocessable_entity unless message
    Hikyaku.publish("/rooms/#{room.id}/messages", message, type: "message", private: true)
    render json: message, status: :created
  end
end
