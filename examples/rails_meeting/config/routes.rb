# frozen_string_literal: true

Rails.application.routes.draw do
  hikyaku

  root "rooms#index"
  resources :rooms, only: %i[index show] do
    resource :token, :typing, :cursor, :summary, only: :create
    resources :messages, only: :create
  end
  resource :session, only: %i[new create destroy]
end
