# frozen_string_literal: true

# One end of a measurement of a link. Both ends run on one machine, and so have one clock.
#
#     probe.rb receive ADDRESS PORT                    UDP packets, until none arrives for a second; prints one JSON object
#     probe.rb send ADDRESS PORT COUNT BYTES GAP_US    IP packets of so many bytes, one each so many microseconds
#     probe.rb sink ADDRESS PORT                       a transfer over TCP; prints {"seconds", "bytes"} of its last quarter
#     probe.rb bulk ADDRESS PORT BYTES

require "json"
require "socket"

HEADERS = 28 # bytes of IP and UDP
SILENCE = 1 # seconds
PATIENCE = 20
PIECE = 1 << 16

def await(socket, seconds) = socket.wait_readable(seconds)

def summary(values)
  sorted = values.sort
  return {"count" => 0} if sorted.empty?
  {"count" => sorted.size, "median" => sorted[sorted.size / 2] / 1e6, "min" => sorted.first / 1e6, "max" => sorted.last / 1e6}
end

# The kernel stamps each packet when it arrives, however late this process wakes up.
def receive(address, port)
  socket = UDPSocket.new
  socket.setsockopt(:SOCKET, :RCVBUFFORCE, 1 << 23)
  socket.setsockopt(:SOCKET, :TIMESTAMPNS, 1)
  socket.bind(address, port)
  warn "ready"
  packets = []
  while await(socket, packets.empty? ? PATIENCE : SILENCE)
    bytes, _from, _flags, stamp = socket.recvmsg(1_500)
    packets << [bytes.unpack1("q"), stamp.timestamp.then { |time| time.to_i * 1_000_000_000 + time.nsec }, bytes.bytesize + HEADERS]
  end
  sent, came, sizes = packets.transpose
  newest = 0
  {"seconds" => (came.last - came.first) / 1e9, "bytes" => sizes.drop(1).sum, "overtaken" => sent.count { |time| (time < newest) || !(newest = time) },
   "delay_ms" => summary(came.zip(sent).map { |to, from| to - from }), "gap_ms" => summary(came.each_cons(2).map { |one, other| other - one })}
end

def send_packets(address, port, count, size, gap)
  socket = UDPSocket.new
  socket.setsockopt(:SOCKET, :SNDBUFFORCE, 1 << 23)
  socket.connect(address, port)
  filler = "\0" * (size - HEADERS - 8)
  start = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
  count.times do |number|
    left = start + number * gap * 1_000 - Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
    sleep(left / 1e9) if left.positive?
    socket.send([Process.clock_gettime(Process::CLOCK_REALTIME, :nanosecond)].pack("q") + filler, 0)
  end
end

# By the last quarter TCP has found its pace.
def sink(address, port)
  listener = TCPServer.new(address, port)
  warn "ready"
  await(listener, PATIENCE) || abort("nothing came")
  socket = listener.accept
  total = socket.read(8).unpack1("q")
  came = before = 0
  began = nil
  while came < total
    await(socket, PATIENCE) || abort("nothing came")
    came += socket.readpartial(PIECE).bytesize
    next if began || came < total - total / 4
    began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    before = came
  end
  {"seconds" => Process.clock_gettime(Process::CLOCK_MONOTONIC) - began, "bytes" => came - before}
end

# CUBIC's slow start ends early where times grow (RFC 9406), and then takes a minute to fill a long link: hence Reno.
def bulk(address, port, total)
  socket = TCPSocket.new(address, port)
  socket.setsockopt(Socket::IPPROTO_TCP, Socket::TCP_CONGESTION, "reno")
  socket.write([total].pack("q"))
  piece = "\0" * PIECE
  (total / PIECE).times { socket.write(piece) }
  socket.write(piece[0, total % PIECE])
  socket.close_write
  socket.read # until the receiver has all
end

mode, address, *numbers = ARGV
figures = send({"receive" => :receive, "send" => :send_packets, "sink" => :sink, "bulk" => :bulk}.fetch(mode), address, *numbers.map { |number| Integer(number) })
puts JSON.generate(figures) if %w[receive sink].include?(mode)
