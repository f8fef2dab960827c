# frozen_string_literal: true

class ApplicationController < ActionController::Base
  before_action :require_sign_in
  helper_method :current_user

  private

  def current_user = @current_user ||= Meeting.user(session[:user_id])

  # A script cannot use a sign-in page.
  def require_sign_in
    return if current_user
    request.format.html? ? redirect_to(new_session_path) : head(:unauthorized)
  end

  # The subject of the tokens, by which sign-out ends their streams.
  def hikyaku_subject = current_user.id
end
