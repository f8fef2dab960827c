# frozen_string_literal: true

require "json"
require "socket"
require "timeout"
require "uri"
require_relative "../sheet"

# One visit to a page: its clock, and whether all bodies are the right ones. A client is a program that gets settings and the
# address of a page, and prints one line of JSON; its exit status is 0 when each body is right:
#
#     ruby library.rb library=net-http connections=2 http://10.79.0.2:8080/s1200x77.html
class Visit
  LIMIT = 240 # seconds
  IMAGE = /<img src=([^\s>]+)>/

  # A server in a thread of the client, with one page. A visit to it rehearses the real one, so that the client uses nothing for the
  # first time while the clock runs.
  def self.rehearse(sheet)
    files = sheet.files
    listener = TCPServer.new("127.0.0.1", 0)
    accepting = Thread.new { loop { Thread.new(listener.accept) { |socket| serve(socket, files) } } }
    accepting.report_on_exception = false
    yield "http://127.0.0.1:#{listener.addr[1]}#{sheet.path}"
  ensure
    accepting&.kill
    listener&.close
  end

  def self.serve(socket, files)
    while (head = socket.gets("\r\n\r\n"))
      body = files.fetch(head[/\AGET (\S+)/, 1])
      type = body.start_with?("GIF") ? "image/gif" : "text/html"
      socket.write("HTTP/1.1 200 OK\r\nContent-Type: #{type}\r\nContent-Length: #{body.bytesize}\r\n\r\n".b << body)
    end
  rescue SystemCallError, IOError
    nil # the client is gone
  ensure
    socket.close
  end
  private_class_method :serve

  # Runs the block for the visit of the command line, and before for a rehearsal. The block calls {#got}.
  def self.run(arguments = ARGV, rehearse: true, &client)
    *settings, url = arguments
    options = settings.to_h { |word| word.split("=", 2) }
    rehearse(Bench::Sheet.new(256, 4)) { |address| new(address, options.merge("memory" => nil)).start(&client) } if rehearse
    visit = new(url, options)
    Timeout.timeout(LIMIT) { visit.start(&client) }
    puts JSON.generate(visit.to_h)
    exit visit.whole? ? 0 : 1
  end

  attr_reader :url, :options, :sheet
  # The connections that the client has opened, if it knows.
  attr_accessor :connections
  # Seconds that are not the visit's.
  attr_accessor :apart

  def initialize(url, options)
    @url = url
    @options = options
    @sheet = Bench::Sheet.at(uri.path)
    @apart = 0.0
  end

  def uri = @uri ||= URI(@url)

  def start
    restart
    yield self
  end

  # Starts the clock again: the work until now was preparation.
  def restart = @started = now

  # Stops the clock.
  #
  # @param bodies [Array<String>] of the images, in their order
  def got(html, bodies)
    @ended = now
    @html = html
    @bodies = bodies
  end

  # The paths of the images of a page.
  def paths(html) = html.scan(IMAGE).flatten

  def absolute(paths) = paths.map { |path| "#{uri.scheme}://#{uri.host}:#{uri.port}#{path}" }

  def whole? = !@bodies.nil? && @html.b == sheet.html.b && sheet.whole?(@bodies)

  def to_h
    {"seconds" => @ended && @ended - @started - apart, "objects" => @bodies&.size.to_i, "bytes" => [@html, *@bodies].compact.sum(&:bytesize),
     "connections" => connections, "whole" => whole?}.compact
  end

  private

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
end
