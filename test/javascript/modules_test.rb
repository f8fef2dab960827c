# frozen_string_literal: true

require "test_helper"
require "fileutils"
require "open3"
require "tmpdir"
load File.expand_path("../../bin/javascript", __dir__) unless defined?(JavascriptModules)

# The modules of hikyaku.js, and the one file that they are joined to.
class ModulesTest < Minitest::Test
  ENTRY = File.join(JavascriptModules::FOLDER, "index.js")

  test "the file that is served is what the modules are" do
    assert_equal JavascriptModules.new.joined, File.read(JavascriptModules::TARGET), "run bin/javascript"
  end

  test "a module is one idea, and no longer than 460 lines" do
    lengths = JavascriptModules.new.lengths
    assert_operator lengths.size, :>, 15
    assert_empty lengths.select { |_, lines| lines > 460 }
  end

  test "the file and the modules export the same, whichever is loaded" do
    node, = skip_unless_available("node")
    exports = [ENTRY, JavascriptModules::TARGET].map do |file|
      output, status = Open3.capture2e(node, "--input-type=module", "-e", "console.log(Object.keys(await import('file://#{file}')).sort().join(' '))")
      assert status.success?, output
      output.strip
    end
    assert_equal ["Coordinator EventParser Hikyaku LIMITS Stream pauseAfter"], exports.uniq
  end

  test "modules are joined each after those that it imports, their comments with them" do
    joined = join("index.js" => %(// The whole.\n\nimport {a} from "./a.js";\nimport {B} from "./b.js";\n\nexport {B};\nnew B(a);\n),
      "a.js" => %(import {B} from "./b.js";\n\n// An a.\nexport const a = new B();\n), "b.js" => "export class B {}\n")
    bars = /^(\/\/ ---- \S+) -+$/
    assert_equal "// The whole.\n\n// ---- b.js\n\nclass B {}\n\n// ---- a.js\n\n// An a.\nconst a = new B();\n\n" \
      "// ---- index.js\n\nexport {B};\nnew B(a);\n", joined.gsub(bars, '\1')
  end

  # By what is wrong: a.js, b.js, and what is said of them. The entry imports a of a.js.
  MISTAKES = {
    "that import each other" => [%(import {b} from "./b.js";\nexport const a = b;\n), %(import {a} from "./a.js";\nexport const b = a;\n), "a.js imports b.js imports a.js"],
    "that are not there" => [%(import {b} from "./b.js";\nexport const a = b;\n), nil, "a.js imports b.js, which is not there"],
    "that nobody imports" => ["export const a = 1;\n", "export const b = 1;\n", "nobody imports b.js"],
    "with names that others have" => [%(import {b} from "./b.js";\nexport const a = b;\nconst c = 1;\n), "export const b = 1;\nconst c = 2;\n", "declares c"],
    "that import what is not exported" => [%(import {b} from "./b.js";\nexport const a = b;\n), "const b = 1;\n", "b.js does not export b"],
    "that use what they do not import" => [%(import {b} from "./b.js";\nexport const a = b + c();\n), "export const b = 1;\nexport function c() {}\n", "a.js uses c"],
    "that import what they do not use" => [%(import {b} from "./b.js";\nexport const a = 1; // not b\n), "export const b = 1;\n", "and does not use it"],
    "that import everything" => [%(import * as all from "./b.js";\nexport const a = 1;\n), nil, "not understood"],
    "that export something without a name" => ["export const a = 1;\nexport default a;\n", nil, "not understood"]
  }.freeze

  MISTAKES.each do |what, (a, b, message)|
    test "modules #{what} are not joined" do
      files = {"index.js" => %(import {a} from "./a.js";\n\nconsole.log(a);\n), "a.js" => a, "b.js" => b}.compact
      error = assert_raises(JavascriptModules::Mistake) { join(files) }
      assert_includes error.message, message
    end
  end

  private

  # @param files [Hash{String => String}]
  # @return [String] what they are joined to
  def join(files)
    Dir.mktmpdir do |folder|
      files.each { |name, source| File.write(File.join(folder, name), source) }
      JavascriptModules.new(folder).joined
    end
  end
end
