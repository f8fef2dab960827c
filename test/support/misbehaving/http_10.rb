# frozen_string_literal: true

require_relative "well_behaved"

module Misbehaving
  # Speaks HTTP/1.0.
  class Http10 < WellBehaved
    # @param kept [Boolean] whether it keeps connections open, as those did that said so
    # @param length [Boolean] whether it announces the length; if not, it closes
    def initialize(kept: false, length: true)
      @kept = kept && length
      @length = length
    end

    def misbehave(connection, request)
      answer = Answer.to(request).with("Connection" => @kept ? "keep-alive" : nil)
      answer = answer.with("Content-Length" => nil) unless @length
      answer.version = "HTTP/1.0"
      connection.write(answer.bytes)
      connection.close unless @kept
    end
  end
end
