# frozen_string_literal: true

class TypingsController < ApplicationController
  rate_limit to: 60, within: 1.minute, by: -> { current_user.id }

  def create
    room = current_user.rooms.find(params[:room_id])
    typist = {id: current_user.id, name: current_user.name, correlation: hikyaku_correlation}
    Hikyaku.publish("/rooms/#{room.id}/now", typist, type: "typing", private: true)
    head :no_content
  end
end
