# frozen_string_literal: true

module Hikyaku
  module HTTP
    class Cache
      # What the field Cache-Control says: RFC 9111, section 5.2. What is repeated counts as its strictest form, what cannot be understood as a refusal.
      class Directives
        FOREVER = 2**31 # seconds; more are as many: RFC 9111, section 1.2.2
        MAX_BYTES = 4096
        TOKEN = "[!#$%&'*+\\-.^_`|~0-9A-Za-z]+"
        # Between commas that stand in no quoted string. One that does not end leaves a mark.
        MEMBER = /(?>[^,"]+|"(?>(?:[^"\\]|\\.?)*)(?:"|(?<open>\z)))+/m
        PARTS = /\A(?<name>#{TOKEN})(?:=(?:"(?<quoted>(?:[^"\\]|\\.)*)"|(?<token>#{TOKEN})))?\z/m
        NAME = /\A#{TOKEN}/
        NAMES = /\A[ \t]*#{TOKEN}[ \t]*(?:,[ \t]*#{TOKEN}[ \t]*)*\z/
        DIGITS = /\A\d+\z/
        # An argument: bare is none at all, broken one that is no token and no quoted string.
        Argument = Struct.new(:kind, :text)
        BARE = Argument.new(:bare, "").freeze
        BROKEN = Argument.new(:broken, "").freeze
        private_constant :MAX_BYTES, :TOKEN, :MEMBER, :PARTS, :NAME, :NAMES, :DIGITS, :Argument, :BARE, :BROKEN

        def self.parse(values) = values.empty? ? NONE : new(values.map(&:b).join(","))

        def initialize(text)
          @arguments = {}
          (text.bytesize > MAX_BYTES) ? refuse : read(text)
          @arguments.freeze
          freeze
        end

        def include?(name) = @arguments.key?(name)

        def least(name, bare: 0)
          @arguments[name]&.map { |argument| (argument.kind == :bare) ? bare : number(argument) || 0 }&.min
        end

        def most(name) = @arguments[name]&.map { |argument| number(argument) || FOREVER }&.max

        def unqualified?(name) = @arguments.fetch(name, []).any? { |argument| !list?(argument) }

        def fields(name)
          @arguments.fetch(name, []).select { |argument| list?(argument) }.flat_map { |argument| argument.text.downcase.split(",").map(&:strip) }
        end

        private

        # An answer that is not kept is never a wrong one.
        def refuse = @arguments["no-store"] = [BARE]

        def read(text)
          text.scan(MEMBER) do
            match = Regexp.last_match
            refuse if match[:open]
            add(match[0].strip)
          end
        end

        def add(member)
          parts = PARTS.match(member)
          name = (parts ? parts[:name] : member[NAME]) or return
          (@arguments[name.downcase] ||= []) << (parts ? argument(parts) : BROKEN)
        end

        def argument(parts)
          return Argument.new(:quoted, parts[:quoted].gsub(/\\(.)/m, '\1')).freeze if parts[:quoted]
          parts[:token] ? Argument.new(:token, parts[:token]).freeze : BARE
        end

        def number(argument) = argument.text.match?(DIGITS) ? [argument.text.to_i, FOREVER].min : nil

        # The token form of it is not to be sent, and what it means not sure: RFC 9111, section 5.2.2.4.
        def list?(argument) = argument.kind == :quoted && argument.text.match?(NAMES)

        NONE = new("".b)
        private_constant :NONE
      end
    end
  end
end
