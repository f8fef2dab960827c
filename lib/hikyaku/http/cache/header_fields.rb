# frozen_string_literal: true

require_relative "../../support/hop_by_hop"

module Hikyaku
  module HTTP
    class Cache
      # Header fields as the cache reads, stores and updates them: RFC 9111, sections 3.1 and 3.2.
      module HeaderFields
        # They belong to one connection, or to a proxy.
        NOT_STORED = [*Support::HopByHop::FIELDS, "proxy-authenticate", "proxy-authentication-info", "proxy-authorization"].to_h { |name| [name, true] }.freeze
        # RFC 9110, section 7.6.1: a connection option must not name a field that is meant for all recipients.
        FOR_ALL = %w[age cache-control content-encoding content-language content-length content-location content-range content-type
          date etag expires last-modified vary].freeze
        # They describe the stored body, which a 304 does not change.
        OF_BODY = %w[content-encoding content-length content-range].freeze
        private_constant :NOT_STORED, :FOR_ALL, :OF_BODY

        module_function

        def values(headers, name) = headers.filter_map { |each, value| value if each == name }

        # The value, if all fields of the name have the same.
        def single(headers, name)
          found = values(headers, name)
          found.first if found.uniq.size == 1
        end

        def end_to_end(headers)
          pairs = headers.map { |name, value| [name.b, value.b] }
          named = Support::HopByHop.named(values(pairs, "connection")).to_h { |name| [name, true] }.except(*FOR_ALL)
          pairs.reject { |name, _| NOT_STORED[name] || named[name] }
        end

        def updated(stored, received)
          changed = end_to_end(received).reject { |field| OF_BODY.include?(field.first) }
          replaced = changed.map(&:first).uniq << "date" << "age" << "set-cookie"
          stored.reject { |field| replaced.include?(field.first) } + changed
        end
      end

      # The directives of Cache-Control: RFC 9111, section 5.2. Of a repeated directive the strictest one counts, and a malformed argument counts as a refusal.
      class Directives
        FOREVER = 2**31 # seconds, the longest time that a cache distinguishes: RFC 9111, section 1.2.2
        MAX_BYTES = 4096
        TOKEN = "[!#$%&'*+\\-.^_`|~0-9A-Za-z]+"
        # The text between two commas outside of quoted strings. The group `open` matches if a quoted string does not end.
        MEMBER = /(?>[^,"]+|"(?>(?:[^"\\]|\\.?)*)(?:"|(?<open>\z)))+/m
        PARTS = /\A(?<name>#{TOKEN})(?:=(?:"(?<quoted>(?:[^"\\]|\\.)*)"|(?<token>#{TOKEN})))?\z/m
        NAME = /\A#{TOKEN}/
        NAMES = /\A[ \t]*#{TOKEN}[ \t]*(?:,[ \t]*#{TOKEN}[ \t]*)*\z/
        DIGITS = /\A\d+\z/
        # The kind is :token, :quoted, :bare (the directive has no argument) or :broken.
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

        # The least number of seconds that the directive names; `bare` stands for a missing argument, and 0 for a malformed one.
        def least(name, bare: 0)
          @arguments[name]&.map { |argument| (argument.kind == :bare) ? bare : number(argument) || 0 }&.min
        end

        # The greatest number of seconds that the directive names.
        def most(name) = @arguments[name]&.map { |argument| number(argument) || FOREVER }&.max

        # Whether the directive holds for the whole response, and not for some fields only.
        def unqualified?(name) = @arguments.fetch(name, []).any? { |argument| !list?(argument) }

        # The fields that the directive names.
        def fields(name)
          @arguments.fetch(name, []).select { |argument| list?(argument) }.flat_map { |argument| argument.text.downcase.split(",").map(&:strip) }
        end

        private

        # In doubt the cache stores nothing.
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

        # Senders must not use the token form, and its meaning is unclear: RFC 9111, section 5.2.2.4.
        def list?(argument) = argument.kind == :quoted && argument.text.match?(NAMES)

        NONE = new("".b)
        private_constant :NONE
      end
    end
  end
end
