# frozen_string_literal: true

require_relative "malformed"

module Hikyaku
  module HTTP
    class Parser
      # HTTP/1.0 or HTTP/1.1.
      module Version
        BYTES = "HTTP/1.1".bytesize
        FORM = /\AHTTP\/([0-9])\.([0-9])\z/n
        private_constant :FORM

        def self.minor(version)
          major, minor = FORM.match(version)&.captures
          raise Malformed.new(:start_line) unless major
          raise Malformed.new(:version) unless major == "1" && minor <= "1"
          minor.to_i
        end
      end
    end
  end
end
