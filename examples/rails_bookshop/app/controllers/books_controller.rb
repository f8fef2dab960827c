# frozen_string_literal: true

class BooksController < ApplicationController
  def index
    # First the newest event, then the data: what changes in between is sent again, not lost.
    @since = hikyaku_last_event_id
    hikyaku_discovery books_url, last_event_id: @since
    @books = Shop.books
    @visitors = Shop.visitors
    @takings = Shop.takings if staff?

    respond_to do |format|
      format.html
      format.json { render json: {books: @books, visitors: @visitors, takings: @takings} }
    end
  end
end
