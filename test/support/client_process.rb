# frozen_string_literal: true

require "tempfile"

# A client in a process of its own, whose output is read as it comes. Every wait has a deadline.
#
#     client = ClientProcess.new("curl", "-sN", url)
#     client.until(/data: Dune/)
#     client.close
class ClientProcess
  PATIENCE = 180

  # It did not print in time what it should, or did not end.
  class TooLate < StandardError
  end

  # Runs to the end.
  #
  # @return [Array(String, Process::Status)] standard output and status
  def self.run(*command, **options)
    client = new(*command, **options)
    status = client.status
    [client.output, status]
  ensure
    client&.close
  end

  attr_reader :pid

  # @param command [Array<String>]
  # @param env [Hash{String => String}]
  # @param input [String] for its standard input
  def initialize(*command, env: {}, input: "", **options)
    @command = command
    @output = +""
    @lock = Mutex.new
    @more = ConditionVariable.new
    @errors = Tempfile.new("client")
    reader, writer = IO.pipe
    stdin = Tempfile.new("client-input")
    stdin.write(input)
    stdin.close
    @pid = Process.spawn(env, *command, in: stdin.path, out: writer, err: @errors.path, **options)
    writer.close
    @thread = Thread.new { read(reader) }
  end

  # @return [String] standard output so far
  def output = @lock.synchronize { @output.dup }

  # @return [String] standard error so far
  def errors = File.read(@errors.path)

  # @return [Array<String>] whole lines of the standard output so far
  def lines = output.lines.select { |line| line.end_with?("\n") }.map(&:chomp)

  # @yieldparam output [String] whenever there is more
  # @param pattern [Regexp, nil] in place of a block
  # @return what the pattern or the block found
  # @raise [TooLate]
  def until(pattern = nil, seconds = PATIENCE)
    deadline = now + seconds
    @lock.synchronize do
      loop do
        found = pattern ? @output.match(pattern) : yield(@output)
        return found if found
        wait = deadline - now
        raise TooLate, "#{pattern&.inspect} did not come from #{@command.first}: #{@output[-2000..] || @output}\n#{errors}" if wait <= 0 || (@ended && !@thread.alive?)
        @more.wait(@lock, [wait, 0.5].min)
      end
    end
  end

  def signal(name) = Process.kill(name, @pid)

  # @return [Process::Status] when it has ended
  # @raise [TooLate]
  def status(seconds = PATIENCE)
    deadline = now + seconds
    until @status
      _, @status = Process.wait2(@pid, Process::WNOHANG)
      raise TooLate, "#{@command.join(" ")} did not end: #{output}\n#{errors}" if now > deadline
      sleep 0.01 unless @status
    end
    @thread.join(1)
    @status
  end

  # Ends it, if it has not ended.
  def close
    return if @status
    signal("CONT")
    signal("TERM")
    status(3)
  rescue TooLate
    signal("KILL")
    _, @status = Process.wait2(@pid)
  ensure
    @thread.join(1) || @thread.kill
  end

  private

  def read(reader)
    loop do
      bytes = reader.readpartial(65_536).force_encoding(Encoding::UTF_8)
      @lock.synchronize do
        @output << bytes
        @more.broadcast
      end
    end
  rescue IOError
    @lock.synchronize do
      @ended = true
      @more.broadcast
    end
  ensure
    reader.close
  end

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
end
