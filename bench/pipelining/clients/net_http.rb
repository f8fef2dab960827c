# frozen_string_literal: true

# Net::HTTP: reads the HTML, and asks for one image after another, on one connection, or `connections=N`.

require "net/http"
require_relative "visit"

Visit.run do |visit|
  count = Integer(visit.options.fetch("connections", "1"))
  open = -> { Net::HTTP.new(visit.uri.host, visit.uri.port, nil).start }
  first = open.call
  html = first.get(visit.uri.path).body
  paths = visit.paths(html)
  bodies = Array.new(paths.size)
  left = Queue.new
  paths.each_index { |number| left << number }
  left.close
  fetch = lambda do |http|
    while (number = left.pop)
      bodies[number] = http.get(paths[number]).body
    end
  end
  others = Array.new([count, paths.size].min - 1) { Thread.new { open.call.tap(&fetch).finish } }
  fetch.call(first)
  others.each(&:join)
  visit.got(html, bodies)
  visit.connections = 1 + others.size
  first.finish
end
