# frozen_string_literal: true

# Hikyaku's client: reads the HTML, then asks for all images; with `start=list` for everything at once, without reading. With
# `start=open` the page is fetched twice, without a cache, and the second time counts: connections are open by then. `memory=FILE`
# is what it remembers of origins; without it knows none.

$LOAD_PATH.unshift(File.expand_path("../../../lib", __dir__))
require "hikyaku/http/client"
require_relative "visit"

module ByHikyaku
  module_function

  # @return [Array<String>] bodies
  def all(client, urls) = client.get(urls).map { |outcome| outcome.error ? raise(outcome.error) : outcome.body }

  # @return [Array(String, Array<String>)] the page, and the bodies of its images
  def page(client, visit)
    html, = all(client, [visit.url])
    [html, all(client, visit.images(html))]
  end

  # @return [Array(String, Array<String>)]
  def list(client, visit)
    html, *bodies = all(client, [visit.url, *visit.list])
    [html, bodies]
  end
end

Visit.run do |visit|
  start = visit.options.fetch("start", "page")
  settings = {memory: visit.options["memory"]}
  settings[:cache] = false if start == "open"
  client = Hikyaku::HTTP::Client.new(**settings)
  if start == "open"
    ByHikyaku.page(client, visit)
    visit.again
  end
  visit.got(*((start == "list") ? ByHikyaku.list(client, visit) : ByHikyaku.page(client, visit)))
  client.close # writes what it remembers
end
