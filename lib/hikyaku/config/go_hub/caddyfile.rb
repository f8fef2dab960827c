# frozen_string_literal: true

require_relative "../../error"

module Hikyaku
  class Config
    class GoHub
      # Reads directives as a Caddyfile has them: words, of which quotes, backquotes and backslashes keep some together; a brace at the
      # end of a line opens a block. Placeholders stand for variables of the environment.
      class Caddyfile
        MAX_BYTES = 65_536
        MAX_DEPTH = 4
        SPACE = /[ \t\r]+/
        COMMENT = /#[^\n]*/
        # A line that goes on in the next.
        CONTINUED = /\\\r?\n/
        QUOTED = /"((?:[^"\\]|\\.)*)"/m
        RAW = /`([^`]*)`/
        WORD = /(?:\\[^\n]|[^\s\\])+/
        # {$NAME} and {$NAME:default} become text before words are read, {env.NAME} a part of a word.
        EARLY = /\{\$([A-Za-z_]\w*)(?::([^}]*))?\}/
        LATE = /\{env\.([A-Za-z_]\w*)\}/
        # A word that is no name may be a key on the wrong line.
        NAME = /\A[a-z][a-z0-9_]{0,39}\z/
        private_constant :NAME, :MAX_BYTES, :MAX_DEPTH, :SPACE, :COMMENT, :CONTINUED, :QUOTED, :RAW, :WORD, :EARLY, :LATE

        # One line: a name, what follows it, and the lines of its block (nil without one).
        Directive = Struct.new(:name, :arguments, :block, :origin, keyword_init: true) do
          def fail!(message) = raise(ConfigError, "#{origin}: #{message}")
        end

        def initialize(text, env:, variable:)
          @text = text
          @env = env
          @variable = variable
          @line = 1
        end

        def directives
          text = @text.gsub(EARLY) { value_of($1) || $2.to_s }
          refuse("larger than #{MAX_BYTES} bytes") if text.bytesize > MAX_BYTES
          @lines = lines(words(text))
          block(0).tap { refuse("a } without its {", @lines.first.first.last) if @lines.any? }
        end

        private

        def words(rest)
          found = []
          until rest.empty?
            rest, word = take(rest)
            found.concat(placed(word)) if word
          end
          found << [nil, @line]
        end

        # A block may stand in one line.
        def placed(word)
          return [word, [nil, word[1]]] if brace?(word, "{")
          return [[nil, word[1]], word, [nil, word[1]]] if brace?(word, "}")
          [word]
        end

        def take(rest)
          case rest
          when /\A\n/ then advance($~) { [nil, @line] }
          when /\A(?:#{SPACE}|#{COMMENT}|#{CONTINUED})/o then advance($~)
          when /\A#{QUOTED}/o then advance($~) { |match| [expand(match[1].gsub(/\\(["\\])/, '\1')), @line, :quoted] }
          when /\A#{RAW}/o then advance($~) { |match| [match[1], @line, :quoted] }
          when /\A(?:["`]|<<)/ then refuse(rest.start_with?("<") ? "here-documents are not understood; use quotes" : "a quote without its end")
          when /\A#{WORD}/o then advance($~) { |match| [expand(match[0].gsub(/\\(.)/, '\1')), @line] }
          else refuse("a backslash with nothing behind it")
          end
        end

        def advance(match)
          word = yield(match) if block_given?
          @line += match[0].count("\n")
          [match.post_match, word]
        end

        def lines(words)
          words.slice_after { |word, _| word.nil? }.map { |line| line.reject { |word, _| word.nil? } }.reject(&:empty?)
        end

        def block(depth)
          refuse("nested too deeply", @lines.first&.first&.at(1)) if depth > MAX_DEPTH
          found = []
          until @lines.empty? || closing?(@lines.first)
            found << directive(@lines.shift, depth)
          end
          found
        end

        def directive(line, depth)
          number = line.first[1]
          opened = brace?(line.last, "{") && line.pop
          refuse("a { without a directive before it", number) if line.empty?
          name, *arguments = line.map(&:first)
          inner = inner_block(number, depth) if opened
          Directive.new(name: name, arguments: arguments, block: inner, origin: ["#{@variable}:#{number}", *(name if name.match?(NAME))].join(": "))
        end

        def inner_block(number, depth)
          found = block(depth + 1)
          refuse("a { without its }", number) if @lines.empty?
          @lines.shift
          found
        end

        def closing?(line) = line.size == 1 && brace?(line.first, "}")

        def brace?(word, brace) = word.first == brace && word[2] != :quoted

        def expand(word)
          word.gsub(LATE) { value_of($1).to_s }
        end

        def value_of(name) = @env[name]

        def refuse(message, line = @line) = raise(ConfigError, "#{@variable}:#{line}: #{message}")
      end
      private_constant :Caddyfile
    end
  end
end
