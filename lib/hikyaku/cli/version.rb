# frozen_string_literal: true

require_relative "command"

module Hikyaku
  module CLI
    # `hikyaku version`
    class Version < Command
      summary "Print the version of Hikyaku and of Ruby."
      usage "hikyaku version"
      examples "hikyaku version"

      private

      def call
        stdout.puts("hikyaku #{VERSION} (#{RUBY_ENGINE} #{RUBY_ENGINE_VERSION}, #{RUBY_PLATFORM})")
      end
    end
  end
end
