# frozen_string_literal: true

class StocksController < ApplicationController
  skip_before_action :require_sign_in

  def index
    @stocks = Stock.order(:symbol)
  end
end
