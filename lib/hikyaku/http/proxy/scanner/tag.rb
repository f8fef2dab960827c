# frozen_string_literal: true

module Hikyaku
  module HTTP
    class Proxy
      class Scanner
        # A start tag as the tokenizer read it, its values not decoded.
        class Tag
          # The attributes that matter; no others are kept.
          WANTED = %w[as background charset color content crossorigin disabled encoding event face for href http-equiv imagesizes imagesrcset
            language loading media name nomodule nonce poster referrerpolicy rel size sizes src srcset type].to_h { |name| [name, true] }.freeze

          attr_reader :name
          attr_reader :values
          attr_reader :stop

          def initialize(name, values, self_closing:, readable:, stop:)
            @name = name
            @values = values
            @self_closing = self_closing
            @readable = readable
            @stop = stop
            freeze
          end

          # Whether it ends with "/>".
          def self_closing? = @self_closing

          # Whether it is not too long as a whole.
          def readable? = @readable
        end
      end
    end
  end
end
