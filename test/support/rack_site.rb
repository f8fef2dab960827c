# frozen_string_literal: true

require "puma"
require "puma/server"

# Puma with any Rack application, in this process: on the loopback, or on a Unix socket.
#
#     RackSite.run(->(env) { [200, {}, ["hello"]] }) { |site| site.url("/a") }
class RackSite
  # @param app [#call]
  # @param unix [String, nil] path of a socket, in place of a port
  # @yieldparam site [RackSite]
  # @return what the block returns
  def self.run(app, unix: nil)
    site = new(app, unix)
    yield site
  ensure
    site&.stop
  end

  def initialize(app, unix)
    @puma = Puma::Server.new(app, nil, min_threads: 1, max_threads: 3, environment: "production", log_writer: Puma::LogWriter.null)
    @port = (unix ? @puma.add_unix_listener(unix) : @puma.add_tcp_listener("127.0.0.1", 0)).local_address.then { |address| address.ip_port if address.ip? }
    @thread = @puma.run
  end

  # @param path [String]
  # @return [String]
  def url(path = "/") = "http://127.0.0.1:#{@port}#{path}"

  def stop
    @puma.stop(true)
    @thread.join
  end
end
