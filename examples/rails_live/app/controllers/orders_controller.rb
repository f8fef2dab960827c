# frozen_string_literal: true

class OrdersController < ApplicationController
  skip_before_action :require_sign_in

  # The new price comes to whoever has asked as to everybody else.
  def create
    Stock.find(params[:stock_id]).buy(100)
    head :no_content
  end
end
