# frozen_string_literal: true

require_relative "http/parser"

module Hikyaku
  # HTTP/1 by itself, without sockets: what clients, proxies and servers are made of.
  module HTTP
    class << self
      # @return [#instrument, nil] what is told of the requests of each {HTTP::Client} that is made from now on and given no instrumenter of its own; in
      #   Rails it is ActiveSupport::Notifications
      attr_accessor :instrumenter
    end
  end
end
