# frozen_string_literal: true

require "json"
require "open3"
require_relative "broker"
require_relative "load"

module Bench
  # What a link takes: a plain TCP stream both ways at once, src/stream.c. It is no broker: {Stage} has all that it can do.
  class LinkFloor < Broker
    # The stream's two ends.
    class Stage
      # @param server [Server]
      # @param link [Link, nil] nil: the loopback
      def initialize(server, link)
        @server = server
        @link = link
      end

      def wake = stream(1).merge("whole" => true)

      # @param megabytes [Integer] each way
      # @return [Hash] "seconds", "bytes"
      def stream(megabytes)
        where = "#{@link ? @link.host : Broker::HOST}:#{@server.port}"
        out, status = Open3.capture2(*@link&.load, Build.program("pin"), Load::CORE.to_s, Build.program("stream"), where, megabytes.to_s)
        raise Load::Failed, "the stream ended early" unless status.success?
        JSON.parse(out)
      end
    end

    def initialize
      super("link-floor", "plain TCP, both ways", levels: ["memory"])
    end

    def command(port, _folder, settings) = [[Build.program("stream"), "#{settings[:host]}:#{port}"], {}]

    def stage(server, link: nil) = Stage.new(server, link)
  end
end
