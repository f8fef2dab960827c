# frozen_string_literal: true

require "json"
require "rbconfig"
require "socket"
require "tempfile"
require_relative "../client_process"

# A process of application.rb that was forked from one which had loaded all that it needs (brood.rb). To its tests it is any
# other client process.
class ForkedProcess < ClientProcess
  # How it ended.
  Status = Struct.new(:exitstatus, :termsig) do
    def success? = exitstatus&.zero?
  end
  private_constant :Status

  # The process that they are forked from.
  class Brood
    SCRIPT = File.expand_path("brood.rb", __dir__)
    LIB = File.expand_path("../../../lib", __dir__)
    private_constant :SCRIPT, :LIB

    # @param adapter [String] of Active Record
    # @param env [Hash{String => String}] by which other gems are found
    # @return [Brood] ends with the tests
    def self.of(adapter, env) = (@all ||= {})[[adapter, env]] ||= new(adapter, env).tap { |brood| Minitest.after_run { brood.close } }

    def initialize(adapter, env)
      @socket, theirs = UNIXSocket.pair
      @pid = Process.spawn({"RAILS_ENV" => "production", **env}, RbConfig.ruby, "-I#{LIB}", SCRIPT, adapter, in: theirs)
      theirs.close
    end

    # @param order [Hash] its task, env and folder
    # @param descriptors [Array<IO>] for its output, its errors, and how it ends
    # @return [Integer] the process
    def fork(order, descriptors)
      descriptors.each { |descriptor| @socket.send_io(descriptor.to_io) }
      @socket.puts(JSON.generate(order))
      @socket.gets&.to_i || raise("what processes are forked from has ended")
    end

    def close
      @socket.close
      Process.wait(@pid)
    end
  end

  # @param brood [Brood]
  # @param task [Array<String>]
  # @param env [Hash{String => String}]
  # @param folder [String]
  def initialize(brood, task, env:, folder:)
    @command = task
    @output = +""
    @lock = Mutex.new
    @more = ConditionVariable.new
    @errors = Tempfile.new("client")
    reader, writer = IO.pipe
    @told, tell = IO.pipe
    @pid = brood.fork({task: task, env: env, folder: folder}, [writer, @errors, tell])
    [writer, tell].each(&:close)
    @thread = Thread.new { read(reader) }
  end

  # @return [Status] when it has ended
  # @raise [TooLate]
  def status(seconds = PATIENCE)
    return @status if @status
    raise TooLate, "#{@command.join(" ")} did not end: #{output}\n#{errors}" unless @told.wait_readable(seconds)
    @status = Status.new(*@told.gets.split.map { |number| Integer(number, exception: false) })
    @thread.join(1)
    @status
  end

  # Ends it, if it has not ended.
  def close
    return if @status
    %w[CONT TERM].each { |name| signal(name) }
    status(3)
  rescue TooLate
    signal("KILL")
    status
  rescue Errno::ESRCH
    status
  ensure
    @thread.join(1) || @thread.kill
  end
end
