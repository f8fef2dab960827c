# frozen_string_literal: true

class TokensController < ApplicationController
  def create
    room = current_user.rooms.find(params[:room_id])
    topics = ["/rooms/#{room.id}/messages", "/rooms/#{room.id}/now", "/users/#{current_user.id}/replies"]
    render plain: hikyaku_token(subscribe: topics, expires_in: 600)
  end
end
