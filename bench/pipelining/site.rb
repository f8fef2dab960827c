# frozen_string_literal: true

require "rbconfig"
require "socket"
require "tmpdir"
require_relative "../harness/front"
require_relative "../harness/server"
require_relative "content"
require_relative "visits_log"

module Bench
  # The pages on a server, at the far end of a link or on the loopback.
  class Site
    PORT = 8080 # in a network of its own; an origin is another with another port
    SECURE_PORT = 8443
    LOOPBACK = "127.0.0.1"
    LOCK = Mutex.new
    private_constant :LOCK

    # nginx, over TLS with HTTP/2 too.
    class Nginx < Front::Nginx
      # @param place [Hash] "address", "port", "secure", "root"
      # @param within [Array<String>] what is to run it
      # @yieldparam log [VisitsLog]
      def run(place, within)
        Dir.mktmpdir("bench-site") do |folder|
          File.chmod(0o755, folder)
          path = File.join(folder, "nginx.conf")
          File.write(path, configuration(folder, place))
          Server.run(command(folder, path), port: place.fetch("port"), within: within) { yield VisitsLog.new(File.join(folder, "visits.log")) }
        end
      end

      private

      def template = "../pipelining/nginx.conf"
    end

    # Puma, without TLS.
    class Puma
      THREADS = 5
      APPLICATION = File.join(__dir__, "config.ru")

      def title = "Puma"

      def versions = {}

      def prepare = nil

      def fingerprint = nil

      # @see Nginx#run
      def run(place, within)
        command = [RbConfig.ruby, Gem.bin_path("puma", "puma"), "--bind", "tcp://#{place.fetch("address")}:#{place.fetch("port")}",
          "--threads", "#{THREADS}:#{THREADS}", "--environment", "production", "--quiet", APPLICATION]
        Server.run(command, port: place.fetch("port"), env: {"BENCH_ROOT" => place.fetch("root")}, within: within) { yield VisitsLog::NONE }
      end
    end

    SERVERS = {"nginx" => Nginx, "puma" => Puma}.freeze

    class << self
      # @param server [String] "nginx" or "puma"
      # @param link [ShapedLink, nil] nil: on the loopback
      # @param sheets [Array<Sheet>] that it is to have, besides {Sheet::FIRST}
      # @yieldparam site [Site]
      # @return what the block returns
      def run(server, link: nil, sheets: [])
        root = Content.prepare(Sheet::FIRST, *sheets)
        kind = SERVERS.fetch(server).new
        kind.prepare
        ports = link ? [PORT, SECURE_PORT] : [Server.free_port, Server.free_port]
        place = {"address" => link ? link.host : LOOPBACK, "port" => ports.first, "secure" => ports.last, "root" => root}
        kind.run(place, link ? link.broker : []) { |log| yield new(place, kind.fingerprint, link ? link.load : [], log) }
      end

      # Of an image, as a server sends it over HTTP/1.1: measured once, on the loopback.
      #
      # @param server [String]
      # @return [Integer] bytes
      def head_bytes(server)
        LOCK.synchronize { (@head_bytes ||= {})[server] ||= run(server) { |site| site.head_bytes(Sheet::FIRST.images.last) } }
      end
    end

    # @return [String, nil] of the public key of its certificate
    attr_reader :fingerprint
    # @return [Array<String>] what runs a program where the clients are
    attr_reader :within
    # @return [VisitsLog] what it was asked
    attr_reader :log

    def initialize(place, fingerprint, within, log)
      @place = place
      @fingerprint = fingerprint
      @within = within
      @log = log
    end

    # @param sheet [Sheet]
    # @param secure [Boolean] over TLS
    # @return [String]
    def url(sheet, secure: false) = "#{secure ? "https" : "http"}://#{@place["address"]}:#{@place[secure ? "secure" : "port"]}#{sheet.path}"

    # @param path [String]
    # @return [Integer] bytes of the head of the answer; on the loopback
    def head_bytes(path)
      TCPSocket.open(@place["address"], @place["port"]) do |socket|
        socket.write("GET #{path} HTTP/1.1\r\nHost: #{@place["address"]}:#{@place["port"]}\r\n\r\n")
        socket.gets("\r\n\r\n").bytesize
      end
    end
  end
end
