# frozen_string_literal: true

require_relative "http/parser"

module Hikyaku
  # HTTP/1 by itself, without sockets: what clients, proxies and servers are made of.
  module HTTP
    class << self
      attr_accessor :instrumenter
    end
  end
end
