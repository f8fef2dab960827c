# frozen_string_literal: true

module Bench
  # What nginx notes of each request: its connection, whether it was pipelined, the status, and the bytes of the request, of the
  # answer, and of its body.
  class VisitsLog
    PIPELINED = "p"

    # Of a server that keeps none.
    NONE = Object.new
    def NONE.mark = nil
    def NONE.since(_mark) = {}
    NONE.freeze

    # @param path [String]
    def initialize(path)
      @path = path
    end

    # @return [Integer] where what comes from now on begins
    def mark = File.exist?(@path) ? File.size(@path) : 0

    # @param mark [Integer]
    # @return [Hash{String => Numeric}] figures
    def since(mark)
      lines = File.binread(@path, nil, mark).to_s.lines.map(&:split).select { |words| words.size == 6 }
      return {} if lines.empty?
      {"connections" => lines.map(&:first).uniq.size, "requests" => lines.size, "pipelined" => lines.count { |words| words[1] == PIPELINED },
       "request_bytes" => mean(lines) { |words| words[3].to_i }, "head_bytes" => mean(lines) { |words| words[4].to_i - words[5].to_i }}
    end

    private

    def mean(lines, &bytes) = lines.sum(&bytes).fdiv(lines.size).round(1)
  end
end
