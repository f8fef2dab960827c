# frozen_string_literal: true

require "tmpdir"
require_relative "../harness/front"
require_relative "../harness/server"

module Bench
  # nginx in front of the application of the codec's benchmark, without TLS: it compresses, or only passes on.
  class CodecFront < Front::Nginx
    LOOPBACK = "127.0.0.1"

    # @param gzip [Boolean] whether it compresses
    def initialize(gzip:)
      super()
      @gzip = gzip
    end

    # Starts it on the server's core, and stops it.
    #
    # @param behind [Server] what it stands in front of
    # @yieldparam server [Server] its own
    # @return what the block returns
    def run(behind)
      Dir.mktmpdir("bench-front") do |folder|
        File.chmod(0o755, folder)
        port = Server.free_port
        path = File.join(folder, template)
        values = {"address" => LOOPBACK, "port" => port, "server" => "#{LOOPBACK}:#{behind.port}", "gzip" => @gzip ? "on" : "off"}
        File.write(path, configuration(folder, values))
        Server.run(command(folder, path), port: port) { |server| yield server }
      end
    end

    private

    def template = "codec.conf"
  end
end
