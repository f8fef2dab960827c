# frozen_string_literal: true

class RoomsController < ApplicationController
  def index
    @rooms = current_user.rooms.to_a
  end

  def show
    # The newest event first, then the data: the hub sends what changes in between.
    @since = hikyaku_last_event_id
    @room = current_user.rooms.find(params[:id])
  end
end
