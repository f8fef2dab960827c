# frozen_string_literal: true

module Hikyaku
  module HTTP
    class Proxy
      class Scanner
        # The names of policies by which the field Referer is made.
        #
        # Referrer Policy, section 3; HTML Standard, section "Standard metadata names".
        module ReferrerPolicy
          NAMES = %w[no-referrer no-referrer-when-downgrade same-origin origin strict-origin origin-when-cross-origin strict-origin-when-cross-origin
            unsafe-url].to_h { |name| [name, name] }.freeze
          # Of the element meta, from before there were those.
          OLD = {"never" => "no-referrer", "always" => "unsafe-url", "default" => "strict-origin-when-cross-origin",
                 "origin-when-crossorigin" => "origin-when-cross-origin"}.freeze
          private_constant :NAMES, :OLD

          def self.named(name, meta: false) = NAMES[name] || (OLD[name] if meta)
        end
      end
    end
  end
end
