# frozen_string_literal: true

require_relative "architecture"

# The fenced blocks of a document, and what the comment above each says about running it:
#
#     <!-- run -->                            it ends, and with success
#     <!-- run: background, prints "x" -->    it goes on, and prints x before the document ends
#     <!-- run: hub -->                       it starts the hub that the others talk to
#     <!-- run: broker -->                    the same for a broker
#     <!-- run: proxy -->                     the same for a proxy
#     <!-- run: config.ru -->                 a Rack application whose hub answers
#     <!-- run: config -->                    settings that `hikyaku serve --config` accepts
#     <!-- not run: REASON -->                a reader is told nothing that a program could check
module Snippets
  Snippet = Struct.new(:document, :line, :language, :code, :how, :prints, :reason, keyword_init: true) do
    def place = "#{document}:#{line}"
  end

  # Languages in which a reader may paste something.
  LANGUAGES = %w[sh console ruby js html css yaml nginx].freeze

  BLOCK = /^(?:<!-- (?<comment>[^\n]*?) -->\n)?```(?<language>\w+)\n(?<code>.*?)^```$/m
  RUN = /\Arun(?:: (?<how>background|hub|broker|proxy|config\.ru|config))?(?:, prints "(?<prints>[^"]*)")?\z/
  # The first line of a block that belongs into a file says into which.
  FILE = %r{\A(?:\#|//|<!--|/\*) (?<path>\S+/\S+\.\w+)}
  private_constant :BLOCK, :RUN, :FILE

  class << self
    # @return [Array<String>] documents whose snippets are run
    def documents = Dir["README.md", "docs/guides/*.md", base: Architecture::ROOT].sort

    # @param document [String]
    # @return [Array<Snippet>]
    # @raise [ArgumentError] a block of which it is not said whether it is run
    def of(document)
      text = File.read(File.join(Architecture::ROOT, document))
      found = []
      text.scan(BLOCK) do
        match = $~
        next unless LANGUAGES.include?(match[:language])
        found << snippet(document, text[0...match.begin(:code)].count("\n") + 1, match)
      end
      found
    end

    # What a guide says to write into an application. Two blocks of the same file are its beginning and its end.
    #
    # @param document [String]
    # @return [Hash{String => String}] texts by path
    def files(document)
      of(document).filter_map { |snippet| [$~[:path], snippet.code] if FILE.match(snippet.code) }
        .group_by(&:first).transform_values { |blocks| blocks.map(&:last).join("\n") }
    end

    private

    def snippet(document, line, match)
      comment = match[:comment].to_s
      known = {document: document, line: line, language: match[:language], code: match[:code]}
      if (run = RUN.match(comment))
        Snippet.new(**known, how: run[:how] || "run", prints: run[:prints])
      elsif comment =~ /\Anot run: (.+)\z/
        Snippet.new(**known, how: "not run", reason: $1)
      else
        raise ArgumentError, "#{document}:#{line}: say in a comment above the block whether it is run (test/support/snippets.rb)"
      end
    end
  end
end
