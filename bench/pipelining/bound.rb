# frozen_string_literal: true

module Bench
  # The least time of a page over one new connection that pipelines, as if TCP sent at the link's rate from its first byte: no slow
  # start, no acknowledgements, request heads of 60 bytes. The page's first segment names all images. The time is six times half a
  # round trip, and that of the bytes which leave either end one after another:
  #
  #     client  SYN ─►          ─► GET page          first segment ─► GET, GET, GET …
  #     server          ─► SYN            ─► page: first segment, the rest ─► image, image, image …
  #
  # A response leaves when its request has arrived and the previous response has left. Bytes are those of IP packets.
  class Bound
    HEADS = 52 # bytes of IP and TCP, with time stamps
    OPENING = 60 # of a packet that opens a connection
    SEGMENT = 1_448 # bytes of HTTP in a packet of 1,500
    REQUEST = 60 # bytes of a request's head

    # @param up [Numeric] bits a second, as `down`
    # @param delay [Numeric] milliseconds, one way
    # @param head [Numeric] bytes of a response's head
    def initialize(up:, down:, delay:, head:, **)
      @up = up
      @down = down
      @delay = delay / 1000.0
      @head = head
    end

    # @return [Float] seconds
    def seconds(sheet)
      page = @head + sheet.html.bytesize
      opened = bytes(OPENING, @up) + @delay + bytes(OPENING, @down) + @delay
      known = opened + packets(REQUEST, @up) + @delay + packets([page, SEGMENT].min, @down) + @delay # the first segment has arrived
      left = known - @delay + packets([page - SEGMENT, 0].max, @down) # the page has left
      image = (@head + sheet.size) * (SEGMENT + HEADS).fdiv(SEGMENT) # a response shares packets with the one before
      sheet.count.times { |number| left = [left, known + packets(REQUEST * (number + 1), @up) + @delay].max + bytes(image, @down) }
      left + @delay
    end

    private

    def packets(size, rate) = bytes(size + HEADS * (size / SEGMENT.to_f).ceil, rate)

    def bytes(size, rate) = size * 8.0 / rate
  end
end
