# frozen_string_literal: true

# Request and reply: a server that adds, and clients that ask it, over the broker.
#
#     bundle exec ruby examples/request_reply.rb
#
# Every client has a queue of its own, named by its identity. A request says in its properties where the reply goes to, and
# which request it belongs to. Servers compete for requests: start as many as you like.

require_relative "a_broker"
require "securerandom"

# Asks, and waits for what is answered.
class Asker
  def initialize(client)
    @client = client
    @waiting = {}
    @lock = Mutex.new
    # The client's own queue.
    client.subscribe { |delivery| @lock.synchronize { @waiting.delete(delivery["correlation"]) }&.push(delivery.json) }
  end

  def ask(queue, request)
    correlation = SecureRandom.uuid
    reply = @lock.synchronize { @waiting[correlation] = Queue.new }
    # Nobody wants the answer to a question of yesterday.
    @client.send_message(queue, request, ttl: 10, properties: {"reply-to": @client.identity, correlation: correlation})
    reply.pop
  end
end

def serve(client)
  client.subscribe("sums") do |delivery|
    client.send_message(delivery["reply-to"], delivery.json.sum, to: :client, properties: {correlation: delivery["correlation"]})
  end
end

ABroker.run do |address|
  Hikyaku::Broker::Client.open(address) do |server|
    serve(server)
    Hikyaku::Broker::Client.open(address) do |client|
      asker = Asker.new(client)
      threads = Array.new(5) { |index| Thread.new { [index, asker.ask("sums", [index, index, 1])] } }
      threads.map(&:value).each { |index, sum| puts "#{index} + #{index} + 1 = #{sum}" }
    end
  end
end
