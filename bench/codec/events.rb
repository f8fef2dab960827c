# frozen_string_literal: true

require "json"
require "uri"
require_relative "payloads"

module Bench
  # Events of one application in JSON, all different, each with the load generator's marker as its id.
  module Events
    COUNT = 512
    MARKER_BYTES = 27
    HOLE = "{m}"
    START = 1_767_225_600
    KINDS = %w[order.created order.paid order.packed order.sent order.returned].freeze
    COUNTRIES = %w[AT CH DE FR IT NL PL].freeze
    WAREHOUSES = %w[north-1 north-2 south-1].freeze
    private_constant :MARKER_BYTES, :HOLE, :START, :KINDS, :COUNTRIES, :WAREHOUSES

    class << self
      # Writes events of so many bytes for the load generator: a line each, encoded as a field of a form.
      def write(path, bytes)
        numbers = Payloads::Numbers.new(29)
        lines = Array.new(COUNT) { |number| URI.encode_www_form_component(text(number, bytes, numbers)).gsub("%7Bm%7D", HOLE) }
        File.write(path, lines.join("\n"))
        path
      end

      def text(number, bytes, numbers)
        event = {
          "id" => HOLE, "type" => numbers.one_of(KINDS), "at" => Payloads.time(START + 7 * number),
          "order" => {"id" => 480_000 + number, "total" => numbers.below(90_000) / 100.0, "currency" => "EUR", "items" => 1 + numbers.below(9)},
          "customer" => {"id" => numbers.below(90_000), "name" => Payloads.sentence(numbers, 2), "country" => numbers.one_of(COUNTRIES)},
          "warehouse" => numbers.one_of(WAREHOUSES), "note" => ""
        }
        missing = bytes - (JSON.generate(event).bytesize - HOLE.bytesize + MARKER_BYTES)
        raise ArgumentError, "an event has at least #{bytes - missing} bytes" if missing.negative?
        JSON.generate(event.merge("note" => Payloads.sentence(numbers, missing / 4 + 1)[0, missing]))
      end
    end
  end
end
