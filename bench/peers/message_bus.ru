# frozen_string_literal: true

# message_bus in Puma, in memory: readers poll, and hold the poll open while chunks come (its own way of streaming). The limits
# that it sets to itself, 1,000 readers and 25 seconds, are lifted: they would end the measurement.

require "logger"
require "message_bus"

LONG = 3600 # seconds
ANSWER = [200, {"content-type" => "text/plain"}, ["ok"]].freeze

MessageBus.configure(
  backend: :memory, max_active_clients: 20_000, long_polling_interval: LONG * 1_000, keepalive_interval: LONG,
  logger: Logger.new($stderr, level: Logger::WARN)
)

use MessageBus::Rack::Middleware

publish = lambda do |env|
  MessageBus.publish(env["PATH_INFO"], env["rack.input"].read)
  ANSWER
end

run publish
