# frozen_string_literal: true

class CursorsController < ApplicationController
  rate_limit to: 1200, within: 1.minute, by: -> { current_user.id }

  def create
    room = current_user.rooms.find(params[:room_id])
    x, y = params.values_at(:x, :y).map { |value| value.to_s.to_f.clamp(0, 1) }
    pointer = {id: current_user.id, name: current_user.name, x: x, y: y, correlation: hikyaku_correlation}
    Hikyaku.publish("/rooms/#{room.id}/now", pointer, type: "cursor", private: true)
    head :no_content
  end
end
