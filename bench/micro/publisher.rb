# frozen_string_literal: true

# The publisher's CPU and time for a publish over HTTP, on one kept connection to a server in another process that answers at once. Beside
# it the part of Net::HTTP, and the least that the same bytes can cost: one write and one read.

require "json"
require "socket"
require "tmpdir"
require_relative "../../lib/hikyaku/client/publisher"
require_relative "../harness/measure"

rounds, seconds = Measure.options(rounds: 7, seconds: 0.3)

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

samples = Measure.rounds(work, rounds, seconds, %i[cpu time])
Measure.print(samples, columns: ["time, µs"]) { |_, (times)| times.sort[times.size / 2] }
