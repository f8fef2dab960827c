# frozen_string_literal: true

# Iodine as a publisher and subscriber of Server-Sent Events: a path is a topic, a POST publishes its body. It keeps no history.

require "iodine"

ANSWER = [200, {"content-type" => "text/plain"}, ["ok"]].freeze
UPGRADED = [200, {}, []].freeze

# What iodine calls when a stream stands.
class Reader
  def initialize(topic)
    @topic = topic
  end

  def on_open(client) = client.subscribe(@topic)
end

publish = lambda do |env|
  Iodine.publish(env["PATH_INFO"], env["rack.input"].read)
  ANSWER
end

subscribe = lambda do |env|
  env["rack.upgrade"] = Reader.new(env["PATH_INFO"])
  UPGRADED
end

run ->(env) { (env["rack.upgrade?"] == :sse) ? subscribe.call(env) : publish.call(env) }
