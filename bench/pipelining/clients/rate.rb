# frozen_string_literal: true

# How many requests a second a library makes from one thread, and what each costs it of CPU: one after another (`style=each`), or
# many at once, as the library does that best (`style=batch`). Prints one line of JSON.
#
#     ruby rate.rb library=httpx style=batch requests=10000 http://127.0.0.1:8080/s256x100.html

require "json"
require "uri"
require_relative "../sheet"

# A library and how it is used. Every URL is another one: what is asked for twice might be fetched once.
class Rate
  BATCH = 100
  NONE = "there is no %<style>s with %<library>s"

  # Net::HTTP, one kept connection.
  class Standard
    def initialize(uri)
      require "net/http"
      @http = Net::HTTP.new(uri.host, uri.port, nil).start
    end

    def each(path) = @http.get(path).body

    def close = @http.finish
  end

  # Excon, one kept connection.
  class Excon
    def initialize(uri)
      require "excon"
      @connection = ::Excon.new("http://#{uri.host}:#{uri.port}", persistent: true)
    end

    def each(path) = @connection.get(path: path, expects: 200).body

    def batch(paths) = @connection.requests(paths.map { |path| {method: :get, path: path, expects: 200} }).map(&:body)

    def close = @connection.reset
  end

  # httpx, kept connections.
  class Httpx
    def initialize(uri)
      require "set"
      require "httpx"
      @origin = "http://#{uri.host}:#{uri.port}"
      @session = HTTPX.plugin(:persistent)
    end

    def each(path) = @session.get("#{@origin}#{path}").raise_for_status.body.to_s

    def batch(paths) = @session.get(*paths.map { |path| "#{@origin}#{path}" }).map { |response| response.raise_for_status.body.to_s }

    def close = @session.close
  end

  # Hikyaku's client, without its cache.
  class Hikyaku
    def initialize(uri)
      $LOAD_PATH.unshift(File.expand_path("../../../lib", __dir__))
      require "hikyaku/http/client"
      @origin = "http://#{uri.host}:#{uri.port}"
      @client = ::Hikyaku::HTTP::Client.new(memory: nil, cache: false)
    end

    def each(path) = @client.get("#{@origin}#{path}").body

    def batch(paths) = @client.get(paths.map { |path| "#{@origin}#{path}" }).map { |outcome| outcome.error ? raise(outcome.error) : outcome.body }

    def close = @client.close
  end

  LIBRARIES = {"net-http" => Standard, "excon" => Excon, "httpx" => Httpx, "hikyaku" => Hikyaku}.freeze

  def initialize(url, library:, style:, requests:)
    uri = URI(url)
    @sheet = Bench::Sheet.at(uri.path)
    @library = LIBRARIES.fetch(library).new(uri)
    abort(format(NONE, style: style, library: library)) unless @library.respond_to?(style)
    @style = style
    @requests = requests
    @number = 0
    @right = true
  end

  # @return [Hash]
  def run
    fetch(BATCH * 2) # what is used for the first time
    cpu, began = process_cpu, now
    fetch(@requests)
    seconds, used = now - began, process_cpu - cpu
    @library.close
    {"requests" => @requests, "seconds" => seconds, "per_second" => @requests / seconds, "cpu_us_each" => used / @requests * 1e6, "whole" => @right}
  end

  private

  def fetch(count)
    Array.new(count) { next_path }.each_slice(BATCH) do |slice|
      paths = slice.map(&:first)
      bodies = (@style == "batch") ? @library.batch(paths) : paths.map { |path| @library.each(path) }
      @right &&= slice.size == bodies.size && slice.zip(bodies).all? { |(_, image), body| Bench::Image.own?(body.to_s, @sheet.size, image) }
    end
  end

  def next_path
    image = @number % @sheet.count
    ["/s#{@sheet.size}/#{image}.gif?#{@number += 1}", image]
  end

  def process_cpu = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
end

*settings, url = ARGV
options = settings.to_h { |word| word.split("=", 2) }
figures = Rate.new(url, library: options.fetch("library"), style: options.fetch("style"), requests: Integer(options.fetch("requests"))).run
puts JSON.generate(figures)
exit figures["whole"] ? 0 : 1
