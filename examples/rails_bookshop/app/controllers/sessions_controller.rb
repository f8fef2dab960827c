# frozen_string_literal: true

# Whoever works here sees the till. A real shop would ask for a password.
class SessionsController < ApplicationController
  def create
    session[:staff] = "staff-#{SecureRandom.hex(8)}"
    hikyaku_authorize subscribe: "/takings", subject: session[:staff]
    redirect_to root_path, status: :see_other
  end

  def destroy
    hikyaku_unauthorize
    Hikyaku.disconnect(subject: session[:staff], revoke: true) if staff?
    reset_session
    redirect_to root_path, status: :see_other
  end
end
