# frozen_string_literal: true

module Hikyaku
  module HTTP
    class Client
      class PipeliningPolicy
        # Servers of which it is known that they answer pipelined requests wrongly, and proxies that are too old for them.
        module KnownOffenders
          # By how the field Server begins.
          NAMES = ["EFAServer/", "Microsoft-IIS/4.", "Microsoft-IIS/5.", "Netscape-Enterprise/3.", "Netscape-Enterprise/4.", "Netscape-Enterprise/5.",
            "Netscape-Enterprise/6.", "WebLogic 3.", "WebLogic 4.", "WebLogic 5.", "WebLogic 6.", "Winstone Servlet Engine v0."].freeze
          # RFC 9110, section 7.6.3: the protocol by which a proxy received the answer.
          OLD = %r{(?:\A|,)\s*(?:HTTP/)?1\.0\s}i
          private_constant :NAMES, :OLD

          module_function

          def name(response)
            server = response["server"] or return
            NAMES.find { |name| server.start_with?(name) }
          end

          def old_proxy?(response) = response.values("via").any? { |value| value.match?(OLD) }
        end
      end
    end
  end
end
