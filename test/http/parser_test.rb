# frozen_string_literal: true

require "test_helper"
require "contracts/parser_contract"

class HTTPParserTest < Minitest::Test
  include ParserContract

  def native? = false
end
