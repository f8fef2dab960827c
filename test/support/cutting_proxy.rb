# frozen_string_literal: true

require "socket"

# Stands between clients and a Unix socket, and cuts all of their connections when a test says so: in the middle of a frame, if
# that is where they are.
class CuttingProxy
  attr_reader :socket

  # @param target [String] path of the socket behind it
  def initialize(target)
    @target = target
    @socket = "#{target}.proxy"
    @lock = Mutex.new
    @pairs = []
    @server = UNIXServer.new(@socket)
    @thread = Thread.new { accept }
  end

  # @return [Integer] how many connections were cut
  def cut
    pairs = @lock.synchronize { @pairs.slice!(0..) }
    pairs.flatten.each(&:close)
    pairs.size
  end

  def close
    @thread.kill
    @server.close
    cut
    File.unlink(@socket)
  rescue Errno::ENOENT
    nil
  end

  private

  def accept
    loop do
      client = @server.accept
      begin
        pair = [client, UNIXSocket.new(@target)]
      rescue SystemCallError
        client.close
        next
      end
      @lock.synchronize { @pairs << pair }
      [pair, pair.reverse].each { |from, to| Thread.new { copy(from, to) } }
    end
  end

  # The end of one side is the end of the other.
  def copy(from, to)
    loop { to.write(from.readpartial(65_536)) }
  rescue IOError, SystemCallError
    [from, to].each(&:close)
  end
end
