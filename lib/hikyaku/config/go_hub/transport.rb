# frozen_string_literal: true

require_relative "../../error"

module Hikyaku
  class Config
    class GoHub
      # Where the Go hub keeps its history. In a file, Hikyaku does likewise, in a folder beside that file; in memory, too. Everything else
      # connects several hubs, which Hikyaku does not.
      class Transport
        # The Go hub's own default.
        DEFAULT_PATH = "mercure.db"
        SUFFIX = ".hikyaku"
        IN_MEMORY = %w[local null].freeze
        OPTIONS = %w[path bucket_name cleanup_frequency size].freeze
        NAME = /\A[a-z][a-z0-9_+-]{0,39}\z/
        URL = %r{\A([a-z][a-z0-9+.-]*)://([^/?#]*)([^?#]*)(?:\?([^#]*))?\z}i
        private_constant :DEFAULT_PATH, :SUFFIX, :IN_MEMORY, :OPTIONS, :NAME, :URL

        def self.from_url(text, origin)
          match = URL.match(text.strip) or raise ConfigError, "#{origin}: expected bolt://PATH or local://"
          options = match[4].to_s.split("&").to_h { |pair| pair.split("=", 2).then { |name, value| [name.to_s, value.to_s] } }
          # As the Go hub reads it: a path that begins with a slash, or else the host.
          path = match[3].empty? ? match[2] : match[3]
          new(match[1].downcase, options.merge("path" => path), origin)
        end

        def self.from_directive(directive)
          directive.fail!("expected the name of a transport: bolt or local") unless directive.arguments.size == 1
          options = directive.block.to_a.to_h { |option| [option.name, option.arguments.first.to_s] }
          new(directive.arguments.first, options, directive.origin)
        end

        attr_reader :origin
        attr_reader :folder

        def initialize(name, options, origin)
          @name = name
          @options = options
          @origin = origin
          return if IN_MEMORY.include?(name)
          refuse unless name == "bolt"
          @path = options["path"].to_s.empty? ? DEFAULT_PATH : options["path"]
          @folder = "#{@path}#{SUFFIX}"
        end

        def doubts
          return [] unless folder
          ["#{origin}: the history is kept in the folder #{folder}; what the Go hub has kept in #{@path} is not read", *option_doubts]
        end

        private

        def option_doubts
          given = @options.keys.grep_v("path")
          unknown = given - OPTIONS
          doubts = unknown.map { |option| "#{origin}: #{option.match?(NAME) ? option : "a word"} is not an option of bolt that Hikyaku knows" }
          doubts << "#{origin}: size counts events, and Hikyaku counts bytes: set history (HIKYAKU_HISTORY), which is 64M unless set" if given.include?("size")
          without = given & %w[bucket_name cleanup_frequency]
          doubts << "#{origin}: #{without.join(" and ")} #{(without.size > 1) ? "have" : "has"} no counterpart in Hikyaku" if without.any?
          doubts
        end

        def refuse
          raise ConfigError, "#{origin}: the transport #{"#{@name} " if @name.match?(NAME)}is not one of Hikyaku's, whose hub is one process: take it away, or give bolt " \
            "(history on the disk, as --storage) or local (in memory)"
        end
      end
      private_constant :Transport
    end
  end
end
