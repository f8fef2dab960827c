# frozen_string_literal: true

require_relative "on_nth"

module Misbehaving
  # Sends a good chunk, and then one whose size is none. Goes on as if nothing had happened.
  class SendsBadChunk < OnNth
    # @param size [String] what stands in place of the second chunk's size
    def initialize(n: 1, size: "xyz")
      super(n: n)
      @size = size
    end

    def misbehave(connection, request)
      answer = Answer.to(request).with("Content-Length" => nil, "Transfer-Encoding" => "chunked")
      half = answer.body.bytesize / 2
      first = answer.body.byteslice(0, half)
      connection.write("#{answer.head}#{half.to_s(16)}\r\n#{first}\r\n#{@size}\r\n#{answer.body.byteslice(half..)}\r\n0\r\n\r\n")
    end
  end
end
