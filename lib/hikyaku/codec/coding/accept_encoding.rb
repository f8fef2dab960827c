# frozen_string_literal: true

module Hikyaku
  module Codec
    module Coding
      # What the field Accept-Encoding of a request says. Members that are no codings with a weight are passed over; of two about the same coding the lower
      # weight counts. A field that is longer than any honest one is taken for one that names nothing.
      #
      # RFC 9110, sections 12.4.2 and 12.5.3.
      class AcceptEncoding
        MOST_BYTES = 1_024
        MOST_MEMBERS = 32
        # Old clients in Java leave the 0 before the point out, as in the field Accept.
        MEMBER = %r{\A[ \t]*([!#$%&'*+\-.^_`|~0-9A-Za-z]+)[ \t]*(?:;[ \t]*[Qq]=(0?\.[0-9]{1,3}|0\.?|1(?:\.0{0,3})?)[ \t]*)?\z}
        ALIASES = {"x-gzip" => "gzip"}.freeze
        ANY = "*"
        private_constant :MOST_BYTES, :MOST_MEMBERS, :MEMBER, :ALIASES, :ANY

        def self.parse(header)
          return NOTHING if header.nil? || header.bytesize > MOST_BYTES
          members = header.b.split(",", MOST_MEMBERS + 1)
          return NOTHING if members.size > MOST_MEMBERS
          new(members.filter_map { |member| MEMBER.match(member)&.captures })
        end

        def initialize(members)
          @weights = members.each_with_object({}) do |(coding, weight), weights|
            name = coding.downcase
            name = ALIASES.fetch(name, name)
            weights[name] = [weights[name], thousandths(weight)].compact.min
          end.freeze
          freeze
        end

        def weight(name) = @weights[name] || @weights.fetch(ANY, 0)

        def identity = @weights["identity"] || @weights[ANY]

        private

        def thousandths(weight) = weight ? (weight.to_f * 1_000).round : 1_000

        NOTHING = new([])
        private_constant :NOTHING
      end
    end
  end
end
