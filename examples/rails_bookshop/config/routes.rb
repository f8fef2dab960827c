# frozen_string_literal: true

Rails.application.routes.draw do
  hikyaku

  root "books#index"
  resources :books, only: :index do
    resource :sale, only: %i[create destroy]
  end
  resource :session, only: %i[create destroy]
end
