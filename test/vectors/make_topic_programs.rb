# frozen_string_literal: true

# Writes topic_programs.json. Only after a change of the format: the file is what other runners are tested against.

require "json"
require_relative "../../lib/hikyaku/hub/topic_program"
require_relative "../../lib/hikyaku/hub/uri_template"
require_relative "../../lib/hikyaku/hub/url_pattern"

pathnames = {
  "/" => ["/", "", "//"],
  "*" => ["", "/", "/a/b", "a" * 3000],
  "/books/:id" => ["/books/1", "/books/", "/books", "/books/1/2", "/books/a.b-c"],
  "/books/*" => ["/books/", "/books/1/2", "/book"],
  "/books/:id/chapters/:n" => ["/books/1/chapters/2", "/books/1/chapters/", "/books/1/2/chapters/3"],
  "/books/:id(\\d+)" => ["/books/12", "/books/1a", "/books/"],
  "/:a-:b" => ["/a-b", "/a-b-c", "/-b", "/a-", "/a"],
  "/*a*b" => ["/ab", "/xaxb", "/ba", "/aab/b"],
  "/files/:path+" => ["/files/a", "/files/a/b/c", "/files/", "/files"],
  "/files{/:path}*" => ["/files", "/files/a/b", "/files/"],
  "/{a}?{b}+(c|de)" => ["/bc", "/abbde", "/ac", "/bd"],
  "/([[a-c]&&[b-z]]{2,3})" => ["/bc", "/bcb", "/b", "/bcbc", "/ab"],
  "/([^\\/a]|^b|c$)" => ["/x", "/a", "/b", "/c", "/"],
  "/(\\w{0,20}a\\w{20})" => ["/#{"a" * 40}", "/#{"a" * 20}", "/#{"ab" * 15}"],
  "/((?:a?){500})" => ["/", "/a", "/#{"a" * 500}", "/#{"a" * 501}"]
}
templates = {
  "https://example.com/books/{id}" => ["https://example.com/books/1", "https://example.com/books/", "https://example.com/books/1/2", "https://example.com/books/%C3%A9"],
  "/é/{a:2}" => ["/é/ab", "/%C3%A9/%E2%82%AC", "/é/abc"],
  "/x{?a,b,c}" => ["/x", "/x?b=1", "/x?a=1&c=2", "/x?c=2&a=1", "/x?"],
  "{/a*}{;b}{#c}" => ["/x/y;b=1#z", ";b", "", "/x#"],
  "{+a}" => ["", "a/b?c", "é"]
}

def entry(kind, pattern, program, texts)
  {kind: kind, pattern: pattern, bytes: program.bytes.unpack1("H*"),
   texts: texts.map { |text| program.run(text).then { |matches, steps| {text: text, matches: matches, steps: steps} } }}
end

entries = pathnames.map do |pattern, texts|
  entry("pathname", pattern, Hikyaku::Hub::UrlPattern.compile({pathname: pattern}).components[:pathname].program, texts)
end
entries += templates.map do |template, texts|
  entry("uri_template", template, Hikyaku::Hub::UriTemplate.compile(template).program, texts)
end
lines = entries.map { |entry| "  #{JSON.generate(entry)}" }
File.write(File.join(__dir__, "topic_programs.json"), "{\"version\": 1, \"programs\": [\n#{lines.join(",\n")}\n]}\n")
