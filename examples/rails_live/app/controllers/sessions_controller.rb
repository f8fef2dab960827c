# frozen_string_literal: true

# Whoever gives a name is let in. A real application would ask for a password.
class SessionsController < ApplicationController
  skip_before_action :require_sign_in

  def new
  end

  def create
    user = User.find_or_create_by(name: params.require(:name).strip)
    return redirect_to new_session_path, alert: "A name has 1 to 40 letters." if user.invalid?
    current_sign_in&.destroy!
    reset_session
    session[:sign_in_id] = user.sign_ins.create!.id
    redirect_to conversations_path, status: :see_other
  end

  def destroy
    current_sign_in&.destroy!
    reset_session
    redirect_to root_path, status: :see_other
  end
end
