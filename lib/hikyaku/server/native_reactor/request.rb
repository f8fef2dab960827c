# frozen_string_literal: true

module Hikyaku
  class Server
    class NativeReactor
      # A request that the engine could not answer by itself. Void as soon as it is answered: then all but
      # `answered?` raise IOError.
      class Request
        # The Rack environment, as Puma makes it. Where `key` is not nil it holds nothing but what decides: of the query
        # component and of the header fields those that a grant may depend on, of the cookies the token's, as REMOTE_ADDR
        # the client's address, whichever proxies that are trusted stand between.
        def env = _env

        def key = _key

        def epoch = _epoch

        def keep_alive? = _keep_alive

        def body_too_large? = _body_too_large

        def answered? = _answered

        def inspect = "#<#{self.class.name}#{" answered" if answered?}>"
      end
    end
  end
end
