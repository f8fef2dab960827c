# frozen_string_literal: true

require_relative "../harness/gem_set"

module Bench
  # The libraries that Hikyaku's client is compared with.
  PIPELINING_GEMS = GemSet.new(File.join(__dir__, "Gemfile"))
end
