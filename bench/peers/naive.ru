# frozen_string_literal: true

# The plainest fan-out in Ruby: Puma gives the socket away, and a publish writes to each in a loop. It keeps no
# history and no tail: what a full socket will not take is lost. A lower bound, not a design.

HEAD = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
ANSWER = [200, {"content-type" => "text/plain"}, ["ok"]].freeze

subscribers = Hash.new { |topics, path| topics[path] = [] }
lock = Mutex.new

subscribe = lambda do |env|
  socket = env["rack.hijack"].call
  socket.write(HEAD)
  lock.synchronize { subscribers[env["PATH_INFO"]] << socket }
  ANSWER
end

publish = lambda do |env|
  event = "data: #{env["rack.input"].read}\n\n"
  lock.synchronize do
    subscribers[env["PATH_INFO"]].reject! do |socket|
      socket.write_nonblock(event, exception: false)
      false
    rescue SystemCallError
      socket.close
      true
    end
  end
  ANSWER
end

run ->(env) { (env["REQUEST_METHOD"] == "POST") ? publish.call(env) : subscribe.call(env) }
