# frozen_string_literal: true

require "json"
require "timeout"
require "uri"
require_relative "../sheet"

# One visit to a page of the benchmark: what every client here fetches, how its time is taken, and whether it got its own bodies.
# A client is a program that is run with settings and the page's address:
#
#     ruby net_http.rb connections=2 http://10.79.0.2:8080/s1200x77.html
#
# and prints one line of JSON. Its exit code is 0 when each body is the right one.
class Visit
  LIMIT = 240 # seconds
  IMAGE = /<img src=([^\s>]+)>/

  class << self
    # Visits the page; before, unless told otherwise, a small one on a server within the client, so that nothing of the client is
    # used for the first time while the clock runs.
    #
    # @param rehearse [Boolean]
    # @yieldparam visit [Visit] of which {#got} is to be called
    def run(arguments = ARGV, rehearse: true, &client)
      *settings, url = arguments
      options = settings.to_h { |word| word.split("=", 2) }
      rehearsed(options, &client) if rehearse
      visit = new(url, options)
      Timeout.timeout(LIMIT) { visit.start(&client) }
      puts JSON.generate(visit.to_h)
      exit visit.whole? ? 0 : 1
    end

    private

    def rehearsed(options, &client)
      require_relative "rehearsal"
      Rehearsal.run(Bench::Sheet.new(256, 4)) { |url| new(url, options.merge("memory" => nil)).start(&client) }
    end
  end

  # @return [String]
  attr_reader :url
  # @return [Hash{String => String, nil}] settings
  attr_reader :options
  # @return [Bench::Sheet]
  attr_reader :sheet
  # @return [Integer, nil] how many the client has opened, if it can tell
  attr_accessor :connections
  # @return [Float] of the time that is not the visit's
  attr_accessor :apart

  def initialize(url, options)
    @url = url
    @options = options
    @sheet = Bench::Sheet.at(uri.path)
    @apart = 0.0
  end

  # @return [URI::HTTP]
  def uri = @uri ||= URI(@url)

  # Runs the clock.
  def start
    again
    yield self
  end

  # The clock begins again: what came before was preparation.
  def again = @started = now

  # Stops the clock.
  #
  # @param html [String] the page
  # @param bodies [Array<String>] of its images, in their order
  def got(html, bodies)
    @ended = now
    @html = html
    @bodies = bodies
  end

  # @return [Array<String>] paths of the images that a page has
  def paths(html) = html.scan(IMAGE).flatten

  # @return [Array<String>] their addresses
  def images(html) = paths(html).map { |path| "#{origin}#{path}" }

  # @return [Array<String>] the same for a client that does not read the page
  def list = sheet.images.map { |path| "#{origin}#{path}" }

  # @return [Boolean]
  def whole? = !@bodies.nil? && @html.b == sheet.html.b && sheet.whole?(@bodies)

  # @return [Hash]
  def to_h
    {"seconds" => @ended && @ended - @started - apart, "objects" => @bodies&.size.to_i, "bytes" => [@html, *@bodies].compact.sum(&:bytesize),
     "connections" => connections, "whole" => whole?}.compact
  end

  private

  def origin = "#{uri.scheme}://#{uri.host}:#{uri.port}"

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
end
