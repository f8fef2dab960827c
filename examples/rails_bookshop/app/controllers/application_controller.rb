# frozen_string_literal: true

class ApplicationController < ActionController::Base
  helper_method def staff? = session[:staff].present?
end
