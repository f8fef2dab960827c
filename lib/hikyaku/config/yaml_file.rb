# frozen_string_literal: true

require_relative "../error"

module Hikyaku
  class Config
    # Reads a YAML file without making objects of it: every scalar is text, which the setting's own type reads. Aliases and
    # tags are refused, so that a file can neither grow in memory nor name a class.
    class YamlFile
      MAX_BYTES = 262_144
      # A list of mappings of scalars is the deepest that a setting takes.
      MAX_DEPTH = 3
      # The secret of development images starts so.
      QUOTE = "put a value that starts with ! in quotes"
      private_constant :MAX_BYTES, :MAX_DEPTH, :QUOTE

      def self.read(path) = new(path).entries

      def initialize(path)
        @path = path
      end

      def entries
        # Loaded here: most runs of the command line have no file.
        require "yaml"
        root = document
        return {} if root.nil? || blank?(root)

        fail_at(root, "expected settings as `name: value`") unless root.is_a?(Psych::Nodes::Mapping)
        refuse_tag(root, nil)
        pairs(root).to_h { |name, (key, node)| [name, [value(node, name), key.start_line + 1]] }
      end

      private

      def document
        documents = Psych.parse_stream(text, filename: @path).children
        fail_at(documents[1], "expected one YAML document") if documents.size > 1
        documents.first&.root
      rescue Psych::SyntaxError => error
        problem = [error.problem, error.context].compact.join(" ").tr("\n", " ")
        problem += "; #{QUOTE}" if problem.include?("tag")
        raise ConfigError, "#{@path}:#{error.line}: not YAML: #{problem}"
      end

      def text
        text = ::File.open(@path, "rb") { |file| file.read(MAX_BYTES + 1) || +"" }.force_encoding(Encoding::UTF_8)
        raise ConfigError, "#{@path}: larger than #{MAX_BYTES} bytes" if text.bytesize > MAX_BYTES
        raise ConfigError, "#{@path}: expected text in UTF-8" unless text.valid_encoding?
        text
      rescue SystemCallError => error
        raise ConfigError, "#{@path}: cannot be read: #{Config.reason(error)}"
      end

      def pairs(mapping)
        seen = {}
        mapping.children.each_slice(2) do |key, node|
          fail_at(key, "expected a setting's name") unless key.is_a?(Psych::Nodes::Scalar)
          fail_at(key, "#{key.value} is given twice") if seen.key?(key.value)
          seen[key.value] = [key, node]
        end
        seen
      end

      def value(node, key, depth = 1)
        refuse_tag(node, key)
        fail_at(node, "#{key}: nested too deeply") if depth > MAX_DEPTH
        case node
        when Psych::Nodes::Scalar then blank?(node) ? nil : node.value
        when Psych::Nodes::Sequence then node.children.map { |child| value(child, key, depth + 1) }
        when Psych::Nodes::Mapping then pairs(node).to_h { |name, (_, child)| [name, value(child, "#{key}: #{name}", depth + 1)] }
        else fail_at(node, "#{key}: aliases (*name) are not supported")
        end
      end

      def refuse_tag(node, key)
        return unless node.respond_to?(:tag) && node.tag && !node.tag.start_with?("tag:yaml.org,2002:")
        fail_at(node, "#{"#{key}: " if key}tags are not supported; #{QUOTE}")
      end

      def blank?(node) = node.is_a?(Psych::Nodes::Scalar) && node.plain && ["", "~", "null", "Null", "NULL"].include?(node.value)

      def fail_at(node, message) = raise(ConfigError, "#{@path}:#{node.start_line + 1}: #{message}")
    end
  end
end
