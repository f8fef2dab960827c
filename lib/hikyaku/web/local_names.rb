# frozen_string_literal: true

module Hikyaku
  class Web
    # The names under which a machine reaches itself: what is said of one of them holds for all.
    module LocalNames
      ALL = ["localhost", "127.0.0.1", "[::1]"].freeze
      HOST = %r{\A([a-z][a-z0-9+.-]*://)#{Regexp.union(ALL)}(?=[:/?]|\z)}i
      private_constant :ALL, :HOST

      module_function

      def of(url)
        prefix = url[HOST, 1] or return [url]
        ALL.map { |name| url.sub(HOST) { prefix + name } }
      end
    end
  end
end
