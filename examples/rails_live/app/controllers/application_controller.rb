# frozen_string_literal: true

class ApplicationController < ActionController::Base
  before_action :require_sign_in
  helper_method :current_user

  private

  def current_user = current_sign_in&.user

  # In the database and not only in the cookie, so that who has signed out cannot come back with an old one.
  def current_sign_in = @current_sign_in ||= SignIn.find_by(id: session[:sign_in_id])

  def require_sign_in
    redirect_to new_session_path, alert: "Please say who you are." unless current_user
  end

  # Prices are for everybody, conversations for whoever is signed in, and what is named after a user for nobody else.
  def may_follow?(stream_name)
    return true if stream_name == "stocks"
    return false unless current_user
    owner = GlobalID.parse(stream_name[/\A[^:]+/])
    owner&.model_name != "User" || owner.model_id == current_user.id.to_s
  end

  # Whose tokens these are: with a sign-in end its streams.
  def hikyaku_subject = current_sign_in&.subject
end
