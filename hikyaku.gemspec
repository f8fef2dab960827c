# frozen_string_literal: true

require_relative "lib/hikyaku/version"

Gem::Specification.new do |spec|
  spec.name = "hikyaku"
  spec.version = Hikyaku::VERSION
  spec.authors = ["The Hikyaku authors"]
  spec.summary = "Real-time and durable delivery for Ruby: one gem, one process, no Redis."
  spec.description = "A Mercure hub in Ruby: publish over HTTP, receive over Server-Sent Events; " \
    "standalone, or mounted in any Rack or Rails application."
  spec.license = "MIT"
  spec.required_ruby_version = ">= 3.1"
  spec.metadata = {"rubygems_mfa_required" => "true"}

  spec.files = Dir["lib/**/*", "app/**/*", "config/**/*", "exe/*", "sig/**/*", "*.md", "LICENSE", "docs/**/*.{md,conf}",
    "ext/hikyaku/{extconf.rb,depend}", "ext/hikyaku/{engine,engine/*,binding}/*.{c,h}"].select { |f| File.file?(f) } - ["lib/hikyaku/native.so"]
  # Where it cannot be compiled, the gem is installed without.
  spec.extensions = ["ext/hikyaku/extconf.rb"]
  spec.bindir = "exe"
  spec.executables = ["hikyaku"]
  spec.require_paths = ["lib"]

  # The floors are the first versions without a known vulnerability.
  spec.add_dependency "jwt", "~> 3.2"
  spec.add_dependency "jwt-eddsa", "~> 1.0"
  spec.add_dependency "nio4r", "~> 2.7"
  spec.add_dependency "puma", "~> 8.0", ">= 8.0.2"
  spec.add_dependency "rack", ">= 3.1.21", *(0..5).map { |patch| "!= 3.2.#{patch}" }, "< 4"
  spec.add_dependency "uri-whatwg_parser", "~> 0.3"
end
