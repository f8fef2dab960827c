# frozen_string_literal: true

module Hikyaku
  module Codec
    # What the field Accept of a request says. Members that are none are passed over, of parameters only the weight counts, and what stands beyond 4 KiB or the
    # 64th member is not read. A field that says nothing that can be understood accepts anything, as no field does.
    #
    # RFC 9110, sections 12.4.2 and 12.5.1.
    class Accept
      # One member: how exactly it speaks of a type, its weight in thousandths, and where it stands.
      Member = Struct.new(:type, :weight, :exactness, :place)
      MOST_BYTES = 4_096
      MOST_MEMBERS = 64
      TOKEN = "[!#$%&'*+\\-.^_`|~0-9A-Za-z]++"
      # A comma in quotes ends no member.
      MEMBERS = /(?:[^",]|"(?:[^"\\]|\\.)*+"?)++/mn
      RANGE = %r{\A[ \t]*+(#{TOKEN}/#{TOKEN}|\*)[ \t]*+(?=;|\z)}n
      PARAMETER = /\G[ \t]*+(?:;[ \t]*+(?:(#{TOKEN})=(#{TOKEN}|"(?:[^"\\]|\\.)*+"))?[ \t]*+)/mn
      # Old clients in Java leave the 0 before the point out, and the /* behind the first star.
      WEIGHT = /\A(?:0?\.\d{1,3}|0\.?|1(?:\.0{0,3})?)\z/n
      ANY = "*/*"
      private_constant :Member, :MOST_BYTES, :MOST_MEMBERS, :TOKEN, :MEMBERS, :RANGE, :PARAMETER, :WEIGHT, :ANY

      # @param header [String, Array<String>, nil] the field's value, or those of several
      # @return [Accept]
      def self.parse(header) = new(Array(header).join(",").b)

      # @api private
      # @param value [String]
      def initialize(value)
        cut = value.byteslice(0, MOST_BYTES)
        cut = cut[0, cut.rindex(",") || 0] if value.bytesize > MOST_BYTES
        @members = cut.scan(MEMBERS).first(MOST_MEMBERS).each_with_index.filter_map { |member, place| member(member, place) }.freeze
        freeze
      end

      # @return [Boolean] whether it says nothing, and so anything will do
      def empty? = @members.empty?

      # @param media_types [String, Array<String>] names of one and the same format, in lower case
      # @return [Float] 0.0 to 1.0: 0 is not accepted
      def quality(media_types)
        return 1.0 if empty?
        (decisive(Array(media_types))&.weight || 0) / 1_000.0
      end

      # The format of the highest weight; of those the one that is named more exactly, that is named earlier, that is offered earlier.
      #
      # @param formats [Array<Format>] what is offered, the first what the server would choose
      # @return [Format, nil] nil: none is accepted
      def choose(formats)
        return formats.first if empty?
        accepted = formats.each_with_index.filter_map do |format, place|
          member = decisive(format.media_types)
          [[-member.weight, -member.exactness, member.place, place], format] if member&.weight&.positive?
        end
        accepted.min_by(&:first)&.last
      end

      private

      # The most exact one decides about a type; of several, the one that accepts most.
      def decisive(media_types)
        media_types.flat_map { |type| about(type) }.max_by { |member| [member.exactness, member.weight, -member.place] }
      end

      def about(type)
        range = "#{type[%r{\A[^/]+}]}/*"
        @members.select { |member| member.type == type || member.type == range || member.type == ANY }
      end

      def member(text, place)
        range = RANGE.match(text) or return
        parameters, weight = parameters(text, range.end(0))
        return unless weight
        type = (range[1] == "*") ? ANY : range[1].downcase
        exactness = exactness(type, parameters) or return
        Member.new(type, weight, exactness, place)
      end

      def exactness(type, parameters)
        return 0 if type == ANY
        return 1 if type.end_with?("/*") && !type.start_with?("*")
        (parameters ? 2 : 3) unless type.include?("*")
      end

      # @return [Array(Boolean, Integer), nil] whether there are any before the weight, and the weight; nil when it makes no sense
      def parameters(text, at)
        any = false
        while at < text.bytesize
          parameter = text.match(PARAMETER, at) or return
          at = parameter.end(0)
          next unless parameter[1]
          return [any, thousandths(parameter[2])] if parameter[1].casecmp?("q")
          any = true
        end
        [any, 1_000]
      end

      def thousandths(weight) = WEIGHT.match?(weight) ? (weight.to_f * 1_000).round : nil
    end
  end
end
