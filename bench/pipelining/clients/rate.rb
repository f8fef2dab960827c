# frozen_string_literal: true

# The requests a second of a library from one thread, and the CPU of each: one after another (`style=each`), or a hundred at once
# (`style=batch`). Each request has another URL: a library might fetch the same URL only once.
#
#     ruby rate.rb library=httpx style=batch requests=10000 http://127.0.0.1:8080/s256x100.html

require "json"
require_relative "../sheet"
require_relative "libraries"

BATCH = 100

*settings, url = ARGV
options = settings.to_h { |word| word.split("=", 2) }
uri = URI(url)
sheet = Bench::Sheet.at(uri.path)
abort("there is no batch with net-http") if options.values_at("library", "style") == %w[net-http batch]
library = Libraries.open(options.fetch("library"), uri, {"cache" => "no"})
number = 0
right = true
fetch = lambda do |count|
  Array.new(count) { ["/s#{sheet.size}/#{number % sheet.count}.gif?#{number += 1}", (number - 1) % sheet.count] }.each_slice(BATCH) do |slice|
    paths = slice.map(&:first)
    bodies = (options["style"] == "batch") ? library.batch(paths) : paths.map { |path| library.each(path) }
    right &&= slice.size == bodies.size && slice.zip(bodies).all? { |(_, image), body| Bench::Image.own?(body.to_s, sheet.size, image) }
  end
end
clocks = -> { [Process::CLOCK_MONOTONIC, Process::CLOCK_PROCESS_CPUTIME_ID].map { |id| Process.clock_gettime(id) } }

fetch.call(BATCH * 2) # warm-up
before = clocks.call
requests = Integer(options.fetch("requests"))
fetch.call(requests)
seconds, cpu = clocks.call.zip(before).map { |after, earlier| after - earlier }
library.close
puts JSON.generate("requests" => requests, "seconds" => seconds, "per_second" => requests / seconds, "cpu_us_each" => cpu / requests * 1e6, "whole" => right)
exit right ? 0 : 1
