# frozen_string_literal: true

module Hikyaku
  class Server
    # Ruby's compiler YJIT, for a process that is a server and nothing else: with the engines in Ruby a message costs two thirds.
    # An application decides for itself.
    module JIT
      # Switches it on where that can be done in a running process, from Ruby 3.3 on. Before, it is for whoever starts Ruby:
      # `RUBYOPT=--yjit`.
      def self.enable
        return false unless defined?(RubyVM::YJIT)
        RubyVM::YJIT.enable if RubyVM::YJIT.respond_to?(:enable) && !RubyVM::YJIT.enabled?
        RubyVM::YJIT.enabled?
      end
    end
  end
end
