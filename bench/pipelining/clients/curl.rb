# frozen_string_literal: true

# curl with six connections, or `http2=yes`, given the list of URLs. Its time is that of the process, less the time of the same curl
# for empty files: its start is not part of the visit.

require "open3"
require "tmpdir"
require_relative "visit"

EMPTY = "file:///dev/null"
LOOKS = 5
COMMON = %w[curl --silent --show-error --fail --parallel --max-time 240 --config -].freeze

def timed(command, config)
  started = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  out, errors, status = Open3.capture3(*command, stdin_data: config)
  abort("curl: #{errors}") unless status.success?
  [Process.clock_gettime(Process::CLOCK_MONOTONIC) - started, out]
end

Visit.run(rehearse: false) do |visit|
  two = visit.options["http2"] == "yes"
  flags = two ? %w[--http2 --insecure --parallel-max 128] : %w[--http1.1 --parallel-max 6]
  Dir.mktmpdir("bench-curl") do |folder|
    urls = [visit.url, *visit.absolute(visit.sheet.images)]
    config = ->(addresses) { addresses.each_with_index.map { |url, number| %(url = "#{url}"\noutput = "#{folder}/#{number}"\n) }.join }
    visit.apart = Array.new(LOOKS) { timed([*COMMON, *flags], config.call(urls.map { EMPTY })).first }.min
    visit.restart
    _, told = timed([*COMMON, *flags, "--write-out", "%{num_connects} %{http_version}\\n"], config.call(urls))
    ended = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    html, *bodies = urls.each_index.map { |number| File.binread("#{folder}/#{number}") }
    visit.got(html, bodies)
    visit.apart += Process.clock_gettime(Process::CLOCK_MONOTONIC) - ended # reading the files
    visit.connections = told.lines.sum { |line| line.to_i }
    abort("curl spoke HTTP/#{told.split.last}") if two && told.lines.any? { |line| line.split.last != "2" }
  end
end
