# frozen_string_literal: true

# Nanoseconds of CPU for one send() of a server: with a system call for each socket, and with many sends in one io_uring_enter(), over TCP on
# the loopback. See bench/harness/src/sends.c and docs/decisions/008-deliveries-through-io-uring.md.

require "etc"
require "json"
require "open3"
require "optparse"
require_relative "../harness/build"

shapes = [[100, 100], [1_000, 256], [10_000, 256], [64, 64], [64, 2]] # sockets, and how many a turn serves
bytes = 225
rounds = 101
OptionParser.new do |parser|
  parser.banner = <<~TEXT
    usage: bin/bench sends [options]

    Measures send() beside io_uring, in one run, each round in another order.
    Example: bin/bench sends --rounds 31

  TEXT
  parser.on("--bytes N", Integer, "of one send (#{bytes})") { |n| bytes = n }
  parser.on("--rounds N", Integer, "how often everything is sent in each way (#{rounds})") { |n| rounds = n }
end.parse!(ARGV)

def median(values) = values.sort[values.size / 2]

puts "Linux #{Etc.uname[:release]}, #{bytes} bytes, #{rounds} rounds: nanoseconds of CPU per send, and the ratio within a round", ""
puts "sockets".rjust(8) + "a turn".rjust(8) + "  " + "way".ljust(44) + %w[median least greatest over\ send()].map { |word| word.rjust(12) }.join
shapes.each do |sockets, turn|
  out, said, status = Open3.capture3(Bench::Build.program("sends"), *[sockets, bytes, turn, rounds].map(&:to_s))
  abort "bench sends: #{said}" unless status.success?
  ways = JSON.parse(out)
  plain = ways.first["ns"]
  ways.each do |way|
    ns = way["ns"]
    ratio = median(ns.zip(plain).map { |mine, its| mine / its })
    puts sockets.to_s.rjust(8) + turn.to_s.rjust(8) + "  " + way["way"].ljust(44) +
      [median(ns), *ns.minmax].map { |value| format("%12.0f", value) }.join + format("%12.2f", ratio)
  end
end
