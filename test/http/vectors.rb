# frozen_string_literal: true

# The vectors of test/vectors/http1_*.txt; the README there says how they are written.
module Vectors
  Vector = Struct.new(:name, :kind, :method, :limits, :bytes, :expected, keyword_init: true)
  FOLDER = File.expand_path("../vectors", __dir__)
  ESCAPES = {"\\r" => "\r", "\\n" => "\n", "\\t" => "\t", "\\\\" => "\\"}.freeze

  class << self
    # @return [Array<Vector>]
    def all
      @all ||= Dir[File.join(FOLDER, "http1_*.txt")].sort.flat_map do |file|
        File.read(file, encoding: "BINARY").split("\n\n").drop(1).map { |text| vector(text.lines(chomp: true)) }
      end
    end

    private

    def vector(lines)
      fields = Hash.new { |hash, key| hash[key] = [] }
      lines.each do |line|
        key, _, value = line.partition(" ")
        fields[key] << value
      end
      kind, method = (fields["kind"].first || "request").split
      Vector.new(name: fields["name"].first, kind: kind.to_sym, method: method || "GET", limits: limits(fields["limits"].first),
        bytes: unescape(fields["send"].join), expected: fields["="].map { |line| "#{line}\n" }.join)
    end

    def limits(text) = text.to_s.split(",").to_h { |limit| limit.split("=") }.to_h { |name, value| [name.to_sym, Integer(value)] }

    def unescape(text) = text.gsub(/\\(?:[rnt\\]|x\h\h)/n) { |escape| ESCAPES[escape] || escape[2, 2].hex.chr }
  end
end
