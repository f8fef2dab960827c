# frozen_string_literal: true

# httpx over HTTP/1.1, with connections that are kept, as it comes: it pipelines. Reads the HTML, then asks for all images.

require "set" # httpx takes it for loaded, which it is from Ruby 3.2 on
require "httpx"
require_relative "visit"

module ByHttpx
  module_function

  # @return [Array<String>] bodies
  def all(session, urls)
    responses = session.get(*urls)
    [responses].flatten(1).map { |response| response.raise_for_status.body.to_s }
  end
end

Visit.run do |visit|
  session = HTTPX.plugin(:persistent)
  html, = ByHttpx.all(session, [visit.url])
  visit.got(html, ByHttpx.all(session, visit.images(html)))
  session.close if session.respond_to?(:close)
end
