# frozen_string_literal: true

require_relative "tokenizer"

module Hikyaku
  class Hub
    class UrlPattern
      # Cuts a pattern written as one string into the patterns of the eight components. It works on tokens, so that the colon of a name
      # is not taken for that of a port, and a group stays in one piece.
      #
      # Without a scheme it is relative: the pattern of a path, a query or a fragment.
      #
      # URL Pattern Standard, "Constructor string parsing".
      class ConstructorString
        CHARS = %i[char escaped_char invalid_char].freeze
        # After these a question mark is a modifier.
        GROUPS = %i[name regexp close asterisk].freeze
        BEFORE_HOSTNAME = %i[protocol authority username password].freeze
        BEFORE_PATHNAME = [*BEFORE_HOSTNAME, :hostname, :port].freeze
        private_constant :CHARS, :GROUPS, :BEFORE_HOSTNAME, :BEFORE_PATHNAME

        def self.parse(input, &special) = new(input, special).parse

        def initialize(input, special)
          @input = input
          @special_test = special
          @tokens = Tokenizer.tokens(input, lenient: true)
          @result = {}
          @start = @index = @depth = @brackets = 0
          @state = :init
          @special = false
        end

        def parse
          while @index < @tokens.size
            @increment = 1
            token = @tokens[@index]
            if token.type == :end
              break if at_end == :done
            elsif token.type == :open
              @depth += 1
            elsif @depth.positive? && token.type != :close
              # Inside braces no component ends.
            else
              @depth -= 1 if @depth.positive?
              __send__(:"in_#{@state}")
            end
            @index += @increment
          end
          @result[:port] = "" if @result.key?(:hostname) && !@result.key?(:port)
          @result
        end

        private

        def at_end
          case @state
          when :init
            rewind(:init)
            if char?("#") then change(:hash, 1)
            elsif search? then change(:search, 1)
            else change(:pathname, 0)
            end
          when :authority then rewind(:hostname)
          else
            change(:done, 0)
            :done
          end
        end

        def in_init
          rewind(:protocol) if char?(":")
        end

        def in_protocol
          return unless char?(":")
          @special = @special_test.call(component)
          if char?("/", @index + 1) && char?("/", @index + 2) then change(:authority, 3)
          elsif @special then change(:authority, 1)
          else change(:pathname, 1)
          end
        end

        def in_authority
          if char?("@") then rewind(:username)
          elsif char?("/") || search? || char?("#") then rewind(:hostname)
          end
        end

        def in_username
          if char?(":") then change(:password, 1)
          else in_password
          end
        end

        def in_password
          change(:hostname, 1) if char?("@")
        end

        def in_hostname
          if char?("[") then @brackets += 1
          elsif char?("]") then @brackets -= 1
          elsif char?(":") && @brackets.zero? then change(:port, 1)
          else in_port
          end
        end

        def in_port
          if char?("/") then change(:pathname, 0)
          else in_pathname
          end
        end

        def in_pathname
          if search? then change(:search, 1)
          else in_search
          end
        end

        def in_search
          change(:hash, 1) if char?("#")
        end

        def in_hash
        end

        # Ends a component and begins another. Components that were left out between them are empty, not wildcards.
        def change(state, skip)
          @result[@state] = component unless %i[init authority].include?(@state)
          fill_gaps(state) unless @state == :init || state == :done
          @state = state
          @index += skip
          @start = @index
          @increment = 0
        end

        def fill_gaps(state)
          @result[:hostname] ||= "" if BEFORE_HOSTNAME.include?(@state) && %i[port pathname search hash].include?(state)
          @result[:pathname] ||= @special ? "/" : "" if BEFORE_PATHNAME.include?(@state) && %i[search hash].include?(state)
          @result[:search] ||= "" if state == :hash && (BEFORE_PATHNAME.include?(@state) || @state == :pathname)
        end

        def rewind(state)
          @index = @start
          @increment = 0
          @state = state
        end

        def char?(value, index = @index)
          token = @tokens[index] || @tokens.last
          token.value == value && CHARS.include?(token.type)
        end

        def search?
          return true if char?("?")
          return false unless @tokens[@index].value == "?"
          @index.zero? || !GROUPS.include?(@tokens[@index - 1].type)
        end

        def component = @input[@tokens[@start].index...@tokens[@index].index]
      end
      private_constant :ConstructorString
    end
  end
end
