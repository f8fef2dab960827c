# frozen_string_literal: true

# What bin/test runs once the set-up is done: see there for its arguments.

require_relative "suite/part"
require_relative "suite/runner"
require_relative "suite/selection"

$stdout.sync = true
Dir.chdir(File.expand_path("../..", __dir__))
begin
  parts = Suite::Selection.new(ARGV).parts
rescue ArgumentError => error
  warn "bin/test: #{error.message}"
  exit 2
end
exit Suite::Runner.new(parts).run
