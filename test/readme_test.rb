# frozen_string_literal: true

require "test_helper"
require "fileutils"
require "support/snippet_runner"

# What the README and the guides tell a reader to type works.
class ReadmeTest < Minitest::Test
  Snippets.documents.each do |document|
    test "the snippets of #{document} run" do
      snippets = Snippets.of(document)
      skip_unless_available("node", npm: "eventsource") if snippets.any? { |snippet| snippet.language == "js" && snippet.how != "not run" }
      runner = SnippetRunner.new
      begin
        refute_empty snippets
        snippets.each { |snippet| runner.run(snippet) }
        runner.settle
      rescue SnippetRunner::Failed => error
        flunk error.message
      ensure
        runner.close
      end
    end
  end

  test "every link of the documents leads to a file" do
    broken = Dir["*.md", "docs/**/*.md", "bench/*.md", "lib/**/*.md", base: Architecture::ROOT].flat_map do |document|
      links = File.read(File.join(Architecture::ROOT, document)).scan(/\]\(([^)#\s]+)(?:#[^)]*)?\)/).flatten.grep_v(/\A[a-z]+:/)
      links.reject { |link| File.exist?(File.expand_path(link, File.join(Architecture::ROOT, File.dirname(document)))) }
        .map { |link| "#{document}: #{link}" }
    end
    assert_empty broken
  end

  test "the README of a folder names files that exist, and is read in a minute" do
    Dir["lib/**/README.md", base: Architecture::ROOT].each do |document|
      text = File.read(File.join(Architecture::ROOT, document))
      folder = File.dirname(File.join(Architecture::ROOT, document))
      files = text.scan(/`([a-z0-9_\/.-]+\/|[a-z0-9_\/-]+\.[a-z]+)`/).flatten
      missing = files.reject { |file| [folder, File.dirname(folder), Architecture::ROOT].any? { |base| File.exist?(File.join(base, file)) } }
      assert_empty missing, document
      assert_operator text.lines.size, :<=, 40, document
    end
  end
end
