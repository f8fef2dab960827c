# frozen_string_literal: true

class MessagesController < ApplicationController
  # The message comes to its author by the stream, as to everybody else; here is a new form.
  def create
    @conversation = Conversation.find(params[:conversation_id])
    message = @conversation.messages.create(body: params.require(:message)[:body], user: current_user)
    render turbo_stream: turbo_stream.replace("new_message", partial: "messages/form", locals: {conversation: @conversation, error: message.errors.full_messages.first})
  end
end
