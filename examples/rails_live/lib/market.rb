# frozen_string_literal: true

# Where prices wander by themselves, in a thread of the server.
module Market
  def self.open(every: 0.5)
    Thread.new do
      loop do
        sleep every
        Rails.application.reloader.wrap { Stock.all.sample&.wander }
      rescue ActiveRecord::ActiveRecordError, Hikyaku::Error => error
        Rails.logger.warn("the market: #{error.message}")
      end
    end
  end
end
