# frozen_string_literal: true

class SummaryJob < ActiveJob::Base
  def perform(names, user_id, correlation)
    reply = {correlation: correlation, answer: names.tally.map { |name, count| "#{name} #{count}" }.join(", ")}
  rescue => error
    reply = {correlation: correlation, error: "it could not be made"}
    raise error
  ensure
    Hikyaku.publish("/users/#{user_id}/replies", reply, type: "reply", private: true)
  end
end
