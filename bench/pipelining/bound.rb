# frozen_string_literal: true

module Bench
  # The least that a page can take on a link with one new connection that pipelines, as if TCP sent at the link's rate from its
  # first byte and said nothing else: no slow start, no acknowledgements, request heads of 60 bytes. The images are known from the
  # page's first segment. Six times half a round trip, and what leaves one after another at either end:
  #
  #     client  SYN ─►          ─► GET page          first segment ─► GET, GET, GET …
  #     server          ─► SYN            ─► page: first segment, the rest ─► image, image, image …
  #
  # An answer leaves when its request has come and the last answer has left. Bytes are those of IP packets.
  class Bound
    HEADS = 52 # bytes of IP and TCP, with time stamps
    OPENING = 60 # of a packet that opens a connection
    SEGMENT = 1_448 # bytes of HTTP in a packet of 1,500
    REQUEST = 60 # bytes of a request's head

    # @param up [Numeric] bits a second
    # @param down [Numeric] likewise
    # @param delay [Numeric] milliseconds under way, one way
    # @param head [Numeric] bytes of a response's head
    def initialize(up:, down:, delay:, head:, **)
      @up = up
      @down = down
      @delay = delay / 1000.0
      @head = head
    end

    # @param sheet [Sheet]
    # @return [Float] seconds
    def seconds(sheet)
      first, rest = parts(@head + sheet.html.bytesize)
      known = opened + leaving(REQUEST, @up) + @delay + leaving(first, @down) + @delay # the page's first segment has come
      free = known - @delay + leaving(rest, @down) # when the page has left
      answered(known, free, sheet) + @delay
    end

    private

    def opened = leaving_bytes(OPENING, @up) + @delay + leaving_bytes(OPENING, @down) + @delay

    def parts(bytes) = [[bytes, SEGMENT].min, [bytes - SEGMENT, 0].max]

    # @return [Float] when the last answer has left
    def answered(known, free, sheet)
      answer = @head + sheet.size
      sheet.count.times.reduce(free) do |left, number|
        asked = known + leaving(REQUEST * (number + 1), @up) + @delay
        [left, asked].max + packed(answer) / @down * 8
      end
    end

    # What follows what was sent before shares its packets.
    def packed(bytes) = bytes * (SEGMENT + HEADS).fdiv(SEGMENT)

    def leaving(bytes, rate) = leaving_bytes(bytes + HEADS * (bytes / SEGMENT.to_f).ceil, rate)

    def leaving_bytes(bytes, rate) = bytes * 8.0 / rate
  end
end
