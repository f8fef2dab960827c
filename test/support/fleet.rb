# frozen_string_literal: true

require "nio"
require "socket"
require_relative "http_client"

# Thousands of subscribers in one thread: sockets that are read as bytes come, without a look at what they mean.
class Fleet
  # One subscriber.
  class Member
    # @return [String] everything that came
    attr_reader :bytes
    attr_reader :socket

    def initialize(socket)
      @socket = socket
      @bytes = +"".b
      @ended = false
    end

    def read
      loop do
        case (part = @socket.read_nonblock(65_536, exception: false))
        when :wait_readable then return
        when nil then return @ended = true
        else @bytes << part
        end
      end
    rescue SystemCallError
      @ended = true
    end

    def ended? = @ended

    # @return [Integer] how often these bytes came
    def count(text) = @bytes.scan(text.b).size
  end

  # For connections, and as much again for the rest of the process.
  def self.allow(files)
    soft, hard = Process.getrlimit(:NOFILE)
    Process.setrlimit(:NOFILE, [files, hard].min, hard) if soft < files
    Process.getrlimit(:NOFILE).first >= files
  end

  # @return [Array<Member>]
  attr_reader :members

  # @param port [Integer]
  # @param request [String] what each sends
  def initialize(port, request)
    @port = port
    @request = request
    @selector = NIO::Selector.new
    @members = []
  end

  # Opens connections, and waits until each has the head of its response and a first byte of the stream.
  def open(count, seconds: 30)
    deadline = HttpClient.now + seconds
    count.times.each_slice(200) do |slice|
      slice.each { add }
      pump(deadline, "the streams to begin") { members.all? { |member| member.bytes.include?("\r\n\r\n:") } }
    end
  end

  # Reads until the block says that it is enough.
  def pump(deadline, what)
    until yield
      raise HttpClient::TooLate, "waited too long for #{what}; #{members.count(&:ended?)} of #{members.size} have ended" if HttpClient.now > deadline
      @selector.select(0.05) { |monitor| receive(monitor) }
    end
  end

  # Closes the connections that were opened last.
  def leave(count)
    @members.pop(count).each do |member|
      @selector.deregister(member.socket)
      member.socket.close
    end
  end

  def close
    @members.each { |member| member.socket.close }
    @members.clear
    @selector.close
  end

  private

  def add
    socket = TCPSocket.new("127.0.0.1", @port)
    socket.write(@request)
    member = Member.new(socket)
    @members << member
    @selector.register(socket, :r).value = member
  end

  def receive(monitor)
    monitor.value.read
    @selector.deregister(monitor.io) if monitor.value.ended?
  end
end
