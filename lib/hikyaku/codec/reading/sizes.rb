# frozen_string_literal: true

require_relative "../../codec"
require_relative "../coding"
require_relative "number"

module Hikyaku
  module Codec
    module Reading
      # How large a body is: as it came, and in each representation and coding that can be made here.
      class Sizes
        # What is taken from a body that becomes something else.
        LIMITS = {max_bytes: 67_108_864, max_depth: 500, max_items: 5_000_000}.freeze
        NAMES = {json: "JSON", msgpack: "MessagePack"}.freeze
        CODINGS = %i[gzip br zstd].freeze
        PLAIN = "plain"
        private_constant :LIMITS, :NAMES, :CODINGS, :PLAIN

        attr_reader :rows
        attr_reader :missing

        def initialize(body, type:, came: nil, coding: nil)
          @body = body
          @rows = {}
          @rows["as it came"] = {coding || PLAIN => came} if came
          @rows["identity"] = coded(body)
          add(type)
        end

        def columns = [PLAIN, *CODINGS.map(&:to_s), *@rows.values.flat_map(&:keys)].uniq & @rows.values.flat_map(&:keys)

        def percent(bytes) = @body.empty? ? "-" : "#{(100.0 * bytes / @body.bytesize).round} %"

        def table
          [["", *columns.flat_map { |name| [name, ""] }]] +
            @rows.map { |name, sizes| [name, *columns.flat_map { |column| cells(sizes[column]) }] }
        end

        private

        def cells(bytes) = bytes ? [Number.text(bytes), percent(bytes)] : ["", ""]

        def add(type)
          object = Codec[type].load(@body, **LIMITS)
          NAMES.each { |format, name| @rows[name] = coded(Codec[format].dump(object)) }
        rescue Error => error
          @missing = error.message
        end

        def coded(bytes)
          codings = CODINGS.map { |name| Coding[name] }.select(&:available?)
          {PLAIN => bytes.bytesize, **codings.to_h { |coding| [coding.name, coding.compress(bytes).bytesize] }}
        end
      end
    end
  end
end
