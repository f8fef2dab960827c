# frozen_string_literal: true

require "socket"

# The network between browsers and a server of this machine, on a port of its own: breaks when a test says so, and stays broken
# until it is mended.
class BreakableLine
  # @return [Integer]
  attr_reader :port

  # @param target [Integer] the server's port
  def initialize(target)
    @target = target
    @server = TCPServer.new("127.0.0.1", 0)
    @port = @server.addr[1]
    @lock = Mutex.new
    @pairs = []
    @broken = false
    @thread = Thread.new { accept }
  end

  # @return [Integer] how many connections were cut
  def break
    pairs = @lock.synchronize do
      @broken = true
      @pairs.slice!(0..)
    end
    pairs.flatten.each(&:close)
    pairs.size
  end

  def mend = @lock.synchronize { @broken = false }

  def close
    @thread.kill
    @server.close
    self.break
  end

  private

  def accept
    loop do
      client = @server.accept
      pair = connect(client) or next client.close
      [pair, pair.reverse].each { |from, to| Thread.new { copy(from, to) } }
    end
  end

  def connect(client)
    @lock.synchronize { [client, TCPSocket.new("127.0.0.1", @target)].tap { |pair| @pairs << pair } unless @broken }
  rescue SystemCallError
    nil
  end

  # The end of one side is the end of the other.
  def copy(from, to)
    loop { to.write(from.readpartial(65_536)) }
  rescue IOError, SystemCallError
    @lock.synchronize { @pairs.delete_if { |pair| pair.include?(from) } }
    [from, to].each(&:close)
  end
end
