# frozen_string_literal: true

# What many applications do first: a thread and a queue for each client.

HEAD = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
ANSWER = [200, {"content-type" => "text/plain"}, ["ok"]].freeze

queues = Hash.new { |topics, path| topics[path] = [] }
lock = Mutex.new

deliver = lambda do |socket, queue, topic|
  socket.write(HEAD)
  loop { socket.write(queue.pop) }
rescue SystemCallError
  lock.synchronize { queues[topic].delete(queue) }
  socket.close
end

subscribe = lambda do |env|
  socket = env["rack.hijack"].call
  queue = Queue.new
  topic = env["PATH_INFO"]
  lock.synchronize { queues[topic] << queue }
  Thread.new { deliver.call(socket, queue, topic) }
  ANSWER
end

publish = lambda do |env|
  event = "data: #{env["rack.input"].read}\n\n"
  lock.synchronize { queues[env["PATH_INFO"]].each { |queue| queue << event } }
  ANSWER
end

run ->(env) { (env["REQUEST_METHOD"] == "POST") ? publish.call(env) : subscribe.call(env) }
