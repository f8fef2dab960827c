# frozen_string_literal: true

require "uri"

module Hikyaku
  class Server
    class Sidecar
      # Under which URL a server is reached on its own machine.
      module ServerURL
        LOCAL = %w[0.0.0.0 127.0.0.1 [::] [::1] localhost].freeze
        SCHEMES = {"tcp" => "http", "ssl" => "https"}.freeze
        private_constant :LOCAL, :SCHEMES

        module_function

        def of(binds)
          bind = Array(binds).map { |text| URI.parse(text) }.find { |uri| SCHEMES.key?(uri.scheme) && uri.port.to_i > 0 } or return
          "#{SCHEMES[bind.scheme]}://#{LOCAL.include?(bind.host) ? "localhost" : bind.host}:#{bind.port}"
        rescue URI::Error
          nil
        end
      end
    end
  end
end
