# frozen_string_literal: true

module Hikyaku
  module Codec
    module Rack
      class Compression
        class Cache
          # Bodies that came once, with what they became, in one string that is written over from its beginning when it is full:
          #
          #     │ plain coded │ plain coded │ the oldest … │ plain coded │
          #                                 ▲ the next one begins here, or at the beginning where it does not fit
          #
          # No strings are kept for them: strings that live as long as it takes to be pushed out, and no longer, would have Ruby look through all of its memory
          # time and again. What is kept of each is its place, which takes memory as well: of small bodies there are no more than there are places.
          class Latest
            # Where it begins, counted from the very first byte on; the lengths of both; and the name of the coding.
            Place = Struct.new(:at, :plain, :coded, :name)
            # What a place takes, about: the object, and its share of the table.
            OVERHEAD = 200
            private_constant :Place, :OVERHEAD

            attr_reader :most

            def initialize(most_bytes, most_places)
              @most_bytes = most_bytes
              @most_places = most_places
              @most = most_bytes + most_places * OVERHEAD
              @ring = nil
              @next = 0
              @places = {}
            end

            def bytes = (@ring ? @ring.bytesize : 0) + size * OVERHEAD

            def size = @places.size

            def keep(hash, plain, name, coded)
              size = plain.bytesize + coded.bytesize
              @places.delete(hash)
              return if size > @most_bytes || @most_places.zero?
              at = place(size)
              write(at, plain)
              write(at + plain.bytesize, coded)
              @places[hash] = Place.new(at, plain.bytesize, coded.bytesize, name)
            end

            # Takes a body out, if it is here.
            def take(hash, plain)
              place = @places[hash]
              return unless place && place.plain == plain.bytesize
              same = read(place.at, place.plain)
              return unless same == plain
              @places.delete(hash)
              yield same, place.name, read(place.at + place.plain, place.coded).freeze
            end

            private

            # Makes room, in one piece.
            def place(size)
              left = @most_bytes - @next % @most_bytes
              @next += left if size > left
              at = @next
              @next += size
              @places.shift while @places.size >= @most_places || (@places.any? && @places.first.last.at < @next - @most_bytes)
              at
            end

            def write(at, bytes)
              @ring ||= String.new(capacity: @most_bytes, encoding: Encoding::BINARY)
              @ring[at % @most_bytes, bytes.bytesize] = bytes
            end

            # A copy. What `byteslice` gives of the end is none, and would have the whole string copied with the next write.
            def read(at, size) = @ring.unpack1("a#{size}", offset: at % @most_bytes)
          end
          private_constant :Latest
        end
      end
    end
  end
end
