# frozen_string_literal: true

# Excon: reads the HTML, then asks for all images in a pipeline on the same connection.

require "excon"
require_relative "visit"

Visit.run do |visit|
  connection = Excon.new("http://#{visit.uri.host}:#{visit.uri.port}", persistent: true)
  html = connection.get(path: visit.uri.path, expects: 200).body
  responses = connection.requests(visit.paths(html).map { |path| {method: :get, path: path, expects: 200} })
  visit.got(html, responses.map(&:body))
  visit.connections = 1
  connection.reset
end
