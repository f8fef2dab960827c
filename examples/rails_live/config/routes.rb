# frozen_string_literal: true

Rails.application.routes.draw do
  hikyaku

  root "stocks#index"
  resources :stocks, only: :index do
    resources :orders, only: :create
  end
  resources :conversations, only: %i[index show create] do
    resources :messages, only: :create
  end
  resources :exports, only: %i[index create]
  resources :answers, only: %i[index create]
  resource :session, only: %i[new create destroy]
end
