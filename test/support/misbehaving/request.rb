# frozen_string_literal: true

module Misbehaving
  # A request as it came.
  class Request
    ENDED = "\r\n\r\n"
    LAST_CHUNK = /(?:\G|\r\n)0\r\n(?:[^\r\n]+\r\n)*\r\n/n
    private_constant :ENDED, :LAST_CHUNK

    # Takes the first request off bytes, with its body.
    #
    # @param bytes [String] binary; what is taken is removed
    # @return [Request, nil] nil when it is not whole
    def self.take(bytes)
      bytes.delete_prefix!("\r\n")
      stop = bytes.index(ENDED) or return
      request = new(bytes[0, stop])
      body = stop + ENDED.bytesize
      length = request.body_bytes(bytes, body)
      return unless length && bytes.bytesize >= body + length
      bytes.slice!(0, body + length)
      request
    end

    # @return [String]
    attr_reader :method, :target
    # @return [Hash{String => String}] names in lower case
    attr_reader :headers

    def initialize(head)
      start, *lines = head.split("\r\n")
      @method, @target, = start.split(" ")
      @headers = lines.to_h { |line| line.split(":", 2).then { |name, value| [name.downcase, value.to_s.strip] } }.freeze
    end

    # @return [String] path and query
    def path = @target.sub(%r{\Ahttps?://[^/?]*}, "").then { |path| path.start_with?("/") ? path : "/#{path}" }

    # @param etag [String]
    # @return [Boolean] whether the client has what is of this tag
    def unchanged?(etag) = @headers["if-none-match"].to_s.split(",").map(&:strip).include?(etag)

    # @return [Integer, nil] nil when that is not known yet
    def body_bytes(bytes, from)
      return @headers["content-length"].to_i unless @headers["transfer-encoding"].to_s.casecmp?("chunked")
      match = LAST_CHUNK.match(bytes, from)
      match && match.end(0) - from
    end
  end
end
