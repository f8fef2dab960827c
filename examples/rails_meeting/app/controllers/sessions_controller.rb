# frozen_string_literal: true

# Every name may sign in. A real application would ask for a password.
class SessionsController < ApplicationController
  skip_before_action :require_sign_in

  def new
  end

  def create
    user = Meeting.enter(params[:name]) or return redirect_to(new_session_path, alert: "A name has 1 to 40 letters.")
    reset_session
    session[:user_id] = user.id
    redirect_to root_path, status: :see_other
  end

  def destroy
    if current_user
      Meeting.leave(current_user)
      Hikyaku.disconnect(subject: current_user.id, revoke: true)
    end
    reset_session
    redirect_to new_session_path, status: :see_other
  end
end
