# frozen_string_literal: true

require "hikyaku/http/cache"

# A cache, and a clock that tests set. Header fields are lines: answer("cache-control: max-age=60"); ask("accept: a", at: 10).
module CacheScenario
  NOW = Time.utc(2026, 5, 6, 7, 8, 9).to_f
  URL = "http://example.com/a"
  KINDS = %i[fresh stale miss unsatisfiable].freeze

  def cache = @cache ||= Hikyaku::HTTP::Cache.new

  def another_cache(**settings) = @cache = Hikyaku::HTTP::Cache.new(**settings)

  def date(seconds = 0) = Time.at(NOW + seconds).utc.strftime("%a, %d %b %Y %H:%M:%S GMT")

  def fields(lines) = lines.map { |line| line.b.split(": ", 2) }

  def dated(lines, at) = (lines.any? { |line| line.start_with?("date: ") }) ? fields(lines) : [["date", date(at)], *fields(lines)]

  def answer(*lines, at: 0, url: URL, method: "GET", request: [], status: 200, body: "body", delay: 0)
    cache.store(method: method, url: url, request_headers: fields(request), status: status, headers: dated(lines, at), body: body,
      requested_at: NOW + at - delay, received_at: NOW + at)
  end

  def ask(*lines, at: 1, url: URL, method: "GET") = cache.find(method: method, url: url, headers: fields(lines), now: NOW + at)

  def not_modified(found, *lines, at:)
    cache.validated(found.stored, headers: dated(lines, at), requested_at: NOW + at, received_at: NOW + at)
  end

  def kind(found)
    kinds = KINDS.select { |name| found.public_send("#{name}?") }
    assert_equal 1, kinds.size, found.inspect
    kinds.first
  end

  def body_of(found) = found.stored.response.body
end
