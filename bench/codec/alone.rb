# frozen_string_literal: true

# Calls the application of ready.ru from one thread, without a server, and prints figures as the load generator does.
#
#     alone.rb PATH TYPE SECONDS

require "json"
require "rack"

path, type, seconds = ARGV
application = Rack::Builder.parse_file(File.join(__dir__, "ready.ru"))
environment = Rack::MockRequest.env_for(path, "HTTP_ACCEPT" => type, "HTTP_ACCEPT_ENCODING" => "gzip").freeze
call = lambda do
  _status, headers, body = application.call(environment.dup)
  bytes = 0
  body.each { |part| bytes += part.bytesize }
  body.close if body.respond_to?(:close)
  [headers["content-encoding"], bytes]
end
clock = -> { [Process::CLOCK_MONOTONIC, Process::CLOCK_PROCESS_CPUTIME_ID].map { |id| Process.clock_gettime(id) } }

first = Array.new(100) { call.call }.last
count = wrong = 0
start, cpu = clock.call
now = nil
loop do
  10.times { wrong += 1 unless call.call == first }
  count += 10
  break if (now = clock.call).first - start > Float(seconds)
end
took, used = now.zip([start, cpu]).map { |after, before| after - before }
puts JSON.generate("responses" => count, "wrong" => wrong, "per_second" => count / took, "cpu_us_each" => used / count * 1_000_000, "body_bytes" => first.last,
  "coding" => first.first)
exit wrong.zero?
