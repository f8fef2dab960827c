# frozen_string_literal: true

require_relative "../topic_program"
require_relative "variables"

module Hikyaku
  class Hub
    class UriTemplate
      # Reads a URI Template.
      #
      # RFC 6570, section 2.
      class Parser
        # Section 2.1, with the apostrophe of erratum 6937. Percent-encoded triplets stand by themselves.
        ASCII_LITERAL = /\G(?:[!\#$&'()*+,\-.\/0-9:;=?@A-Z\[\]_a-z~]|%\h\h)+/
        OTHER_LITERAL = /\G[\u{A0}-\u{D7FF}\u{E000}-\u{FDCF}\u{FDF0}-\u{FFEF}\u{10000}-\u{1FFFD}\u{20000}-\u{2FFFD}\u{30000}-\u{3FFFD}\u{40000}-\u{4FFFD}\u{50000}-\u{5FFFD}\u{60000}-\u{6FFFD}\u{70000}-\u{7FFFD}\u{80000}-\u{8FFFD}\u{90000}-\u{9FFFD}\u{A0000}-\u{AFFFD}\u{B0000}-\u{BFFFD}\u{C0000}-\u{CFFFD}\u{D0000}-\u{DFFFD}\u{E1000}-\u{EFFFD}\u{F0000}-\u{FFFFD}\u{100000}-\u{10FFFD}]/
        NAME = /\G(?:[A-Za-z0-9_]|%\h\h)(?:\.?(?:[A-Za-z0-9_]|%\h\h))*/
        PREFIX = /\G:[1-9][0-9]{0,3}(?![0-9])/
        private_constant :ASCII_LITERAL, :OTHER_LITERAL, :NAME, :PREFIX

        def initialize(string)
          @string = string
          @at = 0
        end

        def expression
          nodes = []
          while @at < @string.size
            nodes << (literal || variables || return)
          end
          TopicProgram::Expression.sequence(nodes)
        end

        private

        def scan(pattern)
          text = @string.match(pattern, @at)&.to_s or return
          @at += text.size
          text
        end

        # An expansion has characters beyond ASCII percent-encoded; topics are often written as they are. Both match.
        def literal
          if (text = scan(ASCII_LITERAL)) then TopicProgram::Expression.bytes(text)
          elsif (char = scan(OTHER_LITERAL))
            encoded = char.bytes.map { |byte| format("%%%02X", byte) }.join
            [:either, [TopicProgram::Expression.bytes(char), TopicProgram::Expression.bytes(encoded)]]
          end
        end

        def variables
          return unless scan(/\G\{/)
          operator = scan(/\G[+\#.\/;?&]/).to_s
          specs = [spec]
          specs << spec while scan(/\G,/)
          return unless specs.all? && scan(/\G\}/)
          Variables.new(operator, specs).expression
        end

        # [name, most characters or nil, explode?]
        def spec
          name = scan(NAME) or return
          if scan(/\G\*/) then [name, nil, true]
          else [name, scan(PREFIX)&.then { |prefix| prefix[1..].to_i }, false]
          end
        end
      end
      private_constant :Parser
    end
  end
end
