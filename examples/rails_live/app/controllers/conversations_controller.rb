# frozen_string_literal: true

class ConversationsController < ApplicationController
  def index
    @conversations = Conversation.left_joins(:messages).group(:id).select("conversations.*, COUNT(messages.id) AS messages_count").order(:title)
  end

  def show
    @conversation = Conversation.find(params[:id])
    @messages = @conversation.messages.includes(:user).last(100)
  end

  def create
    conversation = Conversation.new(params.require(:conversation).permit(:title))
    if conversation.save
      redirect_to conversation, status: :see_other
    else
      redirect_to conversations_path, alert: conversation.errors.full_messages.to_sentence, status: :see_other
    end
  end
end
