# frozen_string_literal: true

require "etc"
require "socket"
require "tempfile"

module Bench
  # A server under measurement: it runs alone on its core.
  class Server
    CORE = 0
    START_SECONDS = 180 # a broker may have to read a million messages first
    STOP_SECONDS = 5
    REST_SECONDS = 5
    LISTENING = "0A" # the state of a socket in /proc/net/tcp

    # The server ended, or did not listen in time.
    class Failed < StandardError
      # The most informative line: the error, without where it was raised.
      def reason
        lines = message.lines.map(&:strip).grep_v(/\A(from |\* |Puma starting|\z)/)
        (lines.find { |line| line.match?(/error/i) } || lines.last).delete_prefix("! ")
      end
    end

    def self.free_port = TCPServer.open("127.0.0.1", 0) { |server| server.addr[1] }

    # The command that runs a program on one core.
    def self.pinned(core, *command) = ["taskset", "-c", core.to_s, *command]

    # Starts the command, yields once its port accepts connections, and stops it.
    #
    # @param env [Hash] environment variables; nil removes one
    # @param within [Array<String>] runs the command in another network
    def self.run(command, port:, env: {}, within: [], limit: START_SECONDS)
      server = new(command, port, env, within)
      server.wait_until_ready(limit)
      yield server
    ensure
      server&.stop
    end

    attr_reader :pid, :port, :start_seconds

    def initialize(command, port, env, within)
      @command = command
      @port = port
      @within = within
      @log = Tempfile.new("bench-server")
      @started = now
      # Settings of the shell must not change what is measured. A run of the tests finds its processes by what begins with HIKYAKU_TEST_.
      clean = ENV.keys.grep(/\A(HIKYAKU_(?!TEST_)|MERCURE_|PUMA_|RACK_)|\AWEB_CONCURRENCY\z/).to_h { |name| [name, nil] }
      @pid = Process.spawn(clean.merge(env), *within, *Server.pinned(CORE, *command),
        in: File::NULL, out: @log.path, err: [:child, :out], rlimit_nofile: Process.getrlimit(:NOFILE).last)
    end

    def wait_until_ready(limit)
      deadline = now + limit
      until listening?
        raise Failed, "#{title} ended before it listened:\n#{last_words}" if ended?
        raise Failed, "#{title} did not listen on port #{port} in #{limit} s:\n#{last_words}" if now > deadline
        sleep 0.02
      end
      @start_seconds = now - @started
    end

    def stop
      Process.kill("TERM", pid) unless ended?
      deadline = now + STOP_SECONDS
      sleep 0.02 until ended? || now > deadline
      kill
    ensure
      @log.close!
    end

    # Kills all its processes at once.
    def kill
      return if ended?
      pids.reverse_each do |one|
        Process.kill("KILL", one)
      rescue Errno::ESRCH
        nil # ended meanwhile
      end
      Process.wait(pid)
      @ended = true
    end

    # The server's process and its descendants.
    def pids
      parents = Dir["/proc/[0-9]*/stat"].filter_map { |path| parent_of(path) }.to_h
      found = [pid]
      found.each { |parent| found.concat(parents.filter_map { |child, its| child if its == parent }) }
    end

    # Resident memory of all processes, in KiB.
    def resident_kb = pids.sum { |one| File.read("/proc/#{one}/statm").split[1].to_i } * Etc.sysconf(Etc::SC_PAGESIZE) / 1024

    # Waits until its processes use no more CPU, for example because the streams of an earlier load are gone.
    def rest
      deadline = now + REST_SECONDS
      used = nil
      sleep 0.25 until used == (used = cpu_ticks) || now > deadline
    end

    private

    def last_words = File.read(@log.path).lines.last(60).join

    def parent_of(path)
      [path[/\d+/].to_i, File.read(path)[/\) \S (\d+)/, 1].to_i]
    rescue SystemCallError
      nil # ended meanwhile
    end

    def cpu_ticks
      pids.map { |one| File.read("/proc/#{one}/stat")[/\).*/].split.values_at(12, 13) }
    rescue SystemCallError
      nil # a process has ended meanwhile
    end

    # A connection from here does not reach another network: the kernel's table lists its listeners.
    def listening?
      return TCPSocket.open("127.0.0.1", port).close || true if @within.empty?
      File.foreach("/proc/#{pid}/net/tcp").any? do |line|
        address, state = line.split.values_at(1, 3)
        state == LISTENING && address.end_with?(format(":%04X", port))
      end
    rescue SystemCallError
      false
    end

    def ended? = @ended ||= !Process.wait(pid, Process::WNOHANG).nil?

    def title = File.basename(@command.find { |part| !part.end_with?("ruby") })

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end
end
