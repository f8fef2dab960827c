# frozen_string_literal: true

require "etc"
require "socket"
require "tempfile"
require_relative "build"

module Bench
  # A server under measurement: started alone on its core, stopped by its own pid.
  class Server
    CORE = 0
    START_SECONDS = 30
    STOP_SECONDS = 5
    REST_SECONDS = 5
    REST_STEP = 0.25
    LISTEN_STEP = 0.02
    LISTENING = "0A" # a socket's state in /proc/net/tcp

    # It ended, or did not listen in time.
    class Failed < StandardError
      # @return [String] the line that says most: the error, without where it was raised
      def reason
        lines = message.lines.map(&:strip).grep_v(/\A(from |\* |Puma starting|\z)/)
        (lines.find { |line| line.match?(/error/i) } || lines.last).delete_prefix("! ")
      end
    end

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
    # @param within [Array<String>] what is to run it: in another network, say
    # @param limit [Numeric] seconds that it may take until it listens
    # @yieldparam server [Server]
    # @return what the block returns
    def self.run(command, port:, env: {}, within: [], limit: START_SECONDS)
      server = new(command, port: port, env: env, within: within)
      server.wait_until_ready(limit)
      yield server
    ensure
      server&.stop
    end

    def initialize(command, port:, env: {}, within: [])
      @command = command
      @port = port
      @within = within
      @log = Tempfile.new("bench-server")
      @started = now
      @pid = Process.spawn(clean_environment.merge(env), *within, Build.program("pin"), CORE.to_s, *command,
        in: File::NULL, out: @log.path, err: [:child, :out], rlimit_nofile: Process.getrlimit(:NOFILE).last)
    end

    # @raise [Failed] with the server's own last words, if it ends or does not listen in time
    def wait_until_ready(limit = START_SECONDS)
      deadline = now + limit
      until listening?
        raise Failed, "#{title} ended before it listened:\n#{last_words}" if ended?
        raise Failed, "#{title} did not listen on port #{port} in #{limit} s:\n#{last_words}" if now > deadline
        sleep LISTEN_STEP
      end
      @start_seconds = now - @started
    end

    # @return [Float] from its start until it listened
    attr_reader :start_seconds

    def stop
      signal("TERM")
      deadline = now + STOP_SECONDS
      sleep 0.02 until ended? || now > deadline
      kill
    ensure
      @log.close!
    end

    # Ends it and all that come from it at once, as a crash would.
    #
    # @return [void]
    def kill
      return if ended?
      pids.reverse_each do |one|
        Process.kill("KILL", one)
      rescue Errno::ESRCH
        nil # it has ended meanwhile
      end
      Process.wait(pid)
      @ended = true
    end

    # Of all its processes: it and those that come from it.
    #
    # @return [Array<Integer>]
    def pids
      parents = Dir["/proc/[0-9]*/stat"].filter_map { |path| parent_of(path) }.to_h
      found = [pid]
      found.each { |parent| found.concat(parents.filter_map { |child, its| child if its == parent }) }
    end

    # @return [Integer] KiB of memory that all its processes have resident
    def resident_kb
      pids.sum { |one| File.read("/proc/#{one}/statm").split[1].to_i } * Etc.sysconf(Etc::SC_PAGESIZE) / 1024
    end

    # Waits until its processes have nothing more to do: until the streams of a load that has ended are gone, say.
    #
    # @return [void]
    def rest
      deadline = now + REST_SECONDS
      used = nil
      until used == (used = cpu_ticks) || now > deadline
        sleep REST_STEP
      end
    end

    # The end of what the server printed.
    def last_words = File.read(@log.path).lines.last(60).join

    private

    # A setting of the shell that runs the benchmark must not change what is measured.
    def clean_environment
      ENV.keys.grep(/\A(HIKYAKU|MERCURE|PUMA|RACK)_|\AWEB_CONCURRENCY\z/).to_h { |name| [name, nil] }
    end

    def parent_of(path)
      [path[/\d+/].to_i, File.read(path)[/\) \S (\d+)/, 1].to_i]
    rescue SystemCallError
      nil # it has ended meanwhile
    end

    def cpu_ticks
      pids.map { |one| File.read("/proc/#{one}/stat")[/\).*/].split.values_at(12, 13) }
    rescue SystemCallError
      nil # a process has ended meanwhile
    end

    # In a network of its own, no connection from here would arrive: its process tells what listens there.
    def listening?
      return listens_in_its_network? if @within.any?
      TCPSocket.open("127.0.0.1", port).close
      true
    rescue SystemCallError
      false
    end

    def listens_in_its_network?
      File.foreach("/proc/#{pid}/net/tcp").any? do |line|
        address, state = line.split.values_at(1, 3)
        state == LISTENING && address.end_with?(format(":%04X", port))
      end
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
