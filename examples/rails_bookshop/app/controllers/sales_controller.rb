# frozen_string_literal: true

# A book is sold, or comes back.
class SalesController < ApplicationController
  def create
    Shop.sell(params[:book_id])
    redirect_to root_path, status: :see_other
  end

  def destroy
    Shop.take_back(params[:book_id])
    redirect_to root_path, status: :see_other
  end
end
