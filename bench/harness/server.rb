# frozen_string_literal: true

require "socket"
require "tempfile"
require_relative "build"

module Bench
  # A server under measurement: started alone on its core, stopped by its own pid.
  class Server
    CORE = 0
    START_SECONDS = 30
    STOP_SECONDS = 5

    # A port that nobody listens on.
    def self.free_port
      TCPServer.open("127.0.0.1", 0) { |server| server.addr[1] }
    end

    attr_reader :pid, :port

    # Starts the command, yields once its port answers, and stops it.
    #
    # @param command [Array<String>]
    # @param port [Integer] where it will listen on 127.0.0.1
    # @param env [Hash] environment variables; nil removes one
    # @yieldparam server [Server]
    # @return what the block returns
    def self.run(command, port:, env: {})
      server = new(command, port: port, env: env)
      server.wait_until_ready
      yield server
    ensure
      server&.stop
    end

    def initialize(command, port:, env: {})
      @command = command
      @port = port
      @log = Tempfile.new("bench-server")
      @pid = Process.spawn(clean_environment.merge(env), Build.program("pin"), CORE.to_s, *command,
        in: File::NULL, out: @log.path, err: [:child, :out], rlimit_nofile: Process.getrlimit(:NOFILE).last)
    end

    # @raise [RuntimeError] with the server's own last words, if it ends or does not listen in time
    def wait_until_ready
      deadline = now + START_SECONDS
      until listening?
        raise "#{title} ended before it listened:\n#{last_words}" if ended?
        raise "#{title} did not listen on port #{port} in #{START_SECONDS} s:\n#{last_words}" if now > deadline
        sleep 0.02
      end
    end

    def stop
      signal("TERM")
      deadline = now + STOP_SECONDS
      sleep 0.02 until ended? || now > deadline
      signal("KILL")
      Process.wait(pid) unless ended?
    ensure
      @log.close!
    end

    # The end of what the server printed.
    def last_words = File.read(@log.path).lines.last(60).join

    private

    # A setting of the shell that runs the benchmark must not change what is measured.
    def clean_environment
      ENV.keys.grep(/\A(HIKYAKU|MERCURE|PUMA|RACK)_|\AWEB_CONCURRENCY\z/).to_h { |name| [name, nil] }
    end

    def listening?
      TCPSocket.open("127.0.0.1", port).close
      true
    rescue SystemCallError
      false
    end

    def ended?
      @ended ||= !Process.wait(pid, Process::WNOHANG).nil?
    end

    def signal(name)
      Process.kill(name, pid) unless ended?
    end

    def title = File.basename(@command.find { |part| !part.end_with?("ruby") })

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end
end
