# frozen_string_literal: true

require "socket"
require_relative "../harness/entrant"
require_relative "../harness/front"
require_relative "sheet"

module Bench
  # The pages on nginx (also over TLS with HTTP/2) or on Puma, at the far end of a link or on the loopback.
  class Site
    PORT, SECURE_PORT = 8080, 8443 # in a network of its own: another port would be another origin
    TITLES = {"nginx" => "nginx", "puma" => "Puma"}.freeze
    LOCK = Mutex.new
    private_constant :LOCK

    class << self
      # @param link [ShapedLink, nil] nil: on the loopback
      # @param sheets [Array<Sheet>] beside {Sheet::FIRST}
      def run(server, link: nil, sheets: [])
        root = Sheet.write(Sheet::FIRST, *sheets)
        port, secure = link ? [PORT, SECURE_PORT] : [Server.free_port, Server.free_port]
        place = {"address" => link ? link.host : Entrant::LOOPBACK, "port" => port, "secure" => secure, "root" => root}
        within = link ? link.server : []
        if server == "nginx"
          front = Front.new("pages.conf")
          front.prepare
          front.run(place, within: within) { |_, folder| yield new(place, front.fingerprint, link, File.join(folder, "visits.log")) }
        else
          command = Entrant.puma(File.join(__dir__, "config.ru"), place["address"], port)
          Server.run(command, port: port, env: {"BENCH_ROOT" => root}, within: within) { yield new(place, nil, link, nil) }
        end
      end

      # Bytes of the head of an image's response over HTTP/1.1: measured once, on the loopback.
      def head_bytes(server)
        LOCK.synchronize { (@head_bytes ||= {})[server] ||= run(server) { |site| site.head_bytes(Sheet::FIRST.images.last) } }
      end
    end

    attr_reader :fingerprint

    def initialize(place, fingerprint, link, log)
      @place = place
      @fingerprint = fingerprint
      @link = link
      @log = log
    end

    # The command that runs a program where the clients are.
    def within = @link ? @link.load : []

    def url(sheet, secure: false) = "#{secure ? "https" : "http"}://#{@place["address"]}:#{@place[secure ? "secure" : "port"]}#{sheet.path}"

    def head_bytes(path)
      TCPSocket.open(@place["address"], @place["port"]) do |socket|
        socket.write("GET #{path} HTTP/1.1\r\nHost: #{@place["address"]}:#{@place["port"]}\r\n\r\n")
        socket.gets("\r\n\r\n").bytesize
      end
    end

    # The figures of the block, and those of nginx's log meanwhile. Of the client's and nginx's numbers of connections nginx's counts.
    # A line has the connection, "p" for a pipelined request, the status, and the bytes of request, response and body.
    def logged
      from = (@log && File.exist?(@log)) ? File.size(@log) : 0
      figures = yield
      lines = @log ? File.binread(@log, nil, from).to_s.lines.map(&:split).select { |words| words.size == 6 } : []
      return figures if lines.empty?
      mean = ->(bytes) { bytes.sum.fdiv(lines.size).round(1) }
      {**figures, "connections" => lines.map(&:first).uniq.size, "requests" => lines.size, "pipelined" => lines.count { |words| words[1] == "p" },
                  "request_bytes" => mean.call(lines.map { |words| words[3].to_i }), "head_bytes" => mean.call(lines.map { |words| words[4].to_i - words[5].to_i })}
    end
  end
end
