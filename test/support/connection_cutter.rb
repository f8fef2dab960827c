# frozen_string_literal: true

require "socket"

# Stands between clients and a Unix socket, and cuts each connection by itself, after so many bytes in one direction.
#
#     cutter = ConnectionCutter.new(path_of_the_broker, path_of_its_own, after: -> { rand(1000..20_000) })
#     cutter.calm
#     cutter.close
class ConnectionCutter
  # @return [Integer] connections that were cut
  attr_reader :cuts

  # @param to [String] path
  # @param path [String]
  # @param after [#call] bytes
  def initialize(to, path, after:)
    @to = to
    @after = after
    @server = UNIXServer.new(path)
    @lock = Mutex.new
    @pairs = []
    @cuts = 0
    @thread = Thread.new { accept }
  end

  # Nothing is cut any more.
  def calm
    @after = nil
  end

  def close
    @thread.kill.join
    @server.close
    @lock.synchronize { @pairs.dup }.each { |pair| sever(pair) }
  end

  private

  def accept
    loop do
      pair = [@server.accept, UNIXSocket.new(@to)]
      @lock.synchronize { @pairs << pair }
      Thread.new { pump(pair, *pair) }
      Thread.new { pump(pair, *pair.reverse) }
    end
  end

  def pump(pair, from, to)
    left = @after&.call
    loop do
      bytes = from.readpartial(16_384)
      bytes = bytes.byteslice(0, left) if left && @after
      to.write(bytes)
      next unless left && @after
      left -= bytes.bytesize
      break unless left.positive?
    end
    @cuts += 1
    sever(pair)
  rescue IOError, SystemCallError
    sever(pair)
  end

  def sever(pair)
    @lock.synchronize { @pairs.delete(pair) }
    pair.each do |socket|
      socket.shutdown
      socket.close
    rescue IOError, SystemCallError
      nil
    end
  end
end
