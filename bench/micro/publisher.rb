# frozen_string_literal: true

# What a publish over HTTP costs the one who publishes: microseconds of its CPU, and of time, on one kept connection to
# a server in another process that reads the request and answers at once. Beside it what part of that is Net::HTTP, and
# the least that the same bytes can cost: one write and one read. The median, least and greatest of several rounds, in
# which everything is measured in turn.

require "json"
require "optparse"
require "socket"
require "tmpdir"
require_relative "../../lib/hikyaku/publisher"

rounds = 7
seconds = 0.3
OptionParser.new do |parser|
  parser.banner = "usage: bin/bench publisher [options]"
  parser.on("--rounds N", Integer, "how often everything is measured (#{rounds})") { |n| rounds = n }
  parser.on("--seconds S", Float, "for how long each time (#{seconds})") { |s| seconds = s }
end.parse!(ARGV)

ANSWER = "HTTP/1.1 200 OK\r\ncontent-type: text/plain; charset=utf-8\r\nhikyaku-idempotency: 1\r\ncontent-length: 12\r\n\r\n#mS8ZcQpE3hM"
TOPIC = "https://example.com/books/1"
DATA = JSON.generate(title: "Dune", text: "x" * 160)
TOKEN = "e30.#{"x" * 400}.#{"y" * 43}"

def answer(io)
  bytes = +""
  loop do
    bytes << io.readpartial(65_536)
    while (stop = bytes.index("\r\n\r\n"))
      length = bytes[/content-length: (\d+)/i, 1].to_i
      break if bytes.bytesize < stop + 4 + length
      bytes.slice!(0, stop + 4 + length)
      io.write(ANSWER)
    end
  end
rescue EOFError, SystemCallError
  nil
end

def serve(listener)
  loop do
    io = listener.accept
    io.setsockopt(Socket::IPPROTO_TCP, Socket::TCP_NODELAY, 1) if io.is_a?(TCPSocket)
    Thread.new { answer(io) }
  end
end

folder = Dir.mktmpdir
tcp = TCPServer.new("127.0.0.1", 0)
unix = UNIXServer.new("#{folder}/s")
server = fork { [tcp, unix].map { |listener| Thread.new { serve(listener) } }.each(&:join) }
at_exit do
  Process.kill("TERM", server)
  Process.wait(server)
  FileUtils.rm_r(folder)
end

url = "http://127.0.0.1:#{tcp.addr[1]}/.well-known/mercure"
over_tcp = Hikyaku::Publisher.new(url, token: TOKEN)
over_unix = Hikyaku::Publisher.new("unix:#{folder}/s", token: TOKEN)
signing = Hikyaku::Publisher.new(url, key: "a secret of thirty-two bytes or more")

form = URI.encode_www_form([["topic", TOPIC], ["data", DATA]])
net_http = Net::HTTP.new("127.0.0.1", tcp.addr[1], nil)
net_http.start
net_http.keep_alive_timeout = 60
headers = {"authorization" => "Bearer #{TOKEN}", "content-type" => "application/x-www-form-urlencoded"}
socket = TCPSocket.new("127.0.0.1", tcp.addr[1])
socket.setsockopt(Socket::IPPROTO_TCP, Socket::TCP_NODELAY, 1)
request = "POST /.well-known/mercure HTTP/1.1\r\nhost: x\r\nauthorization: Bearer #{TOKEN}\r\n" \
  "content-type: application/x-www-form-urlencoded\r\ncontent-length: #{form.bytesize}\r\n\r\n#{form}"

work = {
  "Publisher, TCP" => -> { over_tcp.publish(TOPIC, DATA) },
  "Publisher, Unix socket" => -> { over_unix.publish(TOPIC, DATA) },
  "Publisher, TCP, own tokens" => -> { signing.publish(TOPIC, DATA) },
  "Net::HTTP alone" => -> { net_http.post("/.well-known/mercure", form, headers).body },
  "one write, one read" => lambda {
    socket.write(request)
    socket.readpartial(4096)
  },
  "nothing" => -> {}
}

def measure(seconds, call)
  times = 0
  cpu = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
  started = now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  until now - started > seconds
    50.times { call.call }
    times += 50
    now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end
  [Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) - cpu, now - started].map { |spent| spent / times * 1e6 }
end

work.each_value { |call| measure(0.05, call) }
results = Hash.new { |hash, name| hash[name] = [] }
rounds.times { work.each { |name, call| results[name] << measure(seconds, call) } }

puts "microseconds a publish, #{rounds} rounds#{" " * 8}CPU: median   least  greatest   time: median"
results.each do |name, samples|
  cpu = samples.map(&:first).sort
  puts format("%-32s %20.1f %7.1f %9.1f %14.1f", name, cpu[cpu.size / 2], cpu.first, cpu.last, samples.map(&:last).sort[samples.size / 2])
end
