# frozen_string_literal: true

module Hikyaku
  class Web
    # Puma reads a body before it calls the application, whatever its length. For the paths of a hub that is mounted in it, it
    # reads none that the hub would refuse: of a Content-Length that is too large nothing, of chunks no more than the limit. What
    # is a little too large is for the hub to refuse, with a problem; so is the request whose body was not read.
    module BodyLimit
      # Bytes that are read at least, so that most clients have sent all and see the answer.
      LEAST = 1_048_576
      @limits = {}.freeze
      @lock = Mutex.new
      private_constant :LEAST

      # Prepended to Puma::Client.
      module Client
        private

        def setup_body
          @hikyaku_other_limit = @http_content_length_limit unless defined?(@hikyaku_other_limit)
          limit = BodyLimit.of(@env)
          @http_content_length_limit = limit ? [limit, @hikyaku_other_limit].compact.min : @hikyaku_other_limit
          return super unless limit && !@env.key?("HTTP_TRANSFER_ENCODING") && BodyLimit.exceeds?(@env["CONTENT_LENGTH"], limit)
          @read_header = false
          @chunked_body = false
          @buffer = nil
          @body = self.class::EmptyBody
          # What follows is the body, and no request.
          @env["HTTP_CONNECTION"] = "close"
          set_ready
          true
        end
      end
      private_constant :Client

      class << self
        # Watches over a hub's paths from now on, where Puma is there.
        def watch(paths, max_request_bytes)
          return unless defined?(::Puma::Client) && ::Puma::Client.private_method_defined?(:setup_body) && ::Puma::Client.const_defined?(:EmptyBody)
          limit = hard(max_request_bytes)
          @lock.synchronize { @limits = @limits.merge(paths.to_h { |path| [path, [limit, @limits[path] || 0].max] }).freeze }
          ::Puma::Client.prepend(Client) unless ::Puma::Client.include?(Client)
        end

        def hard(max_request_bytes) = [2 * max_request_bytes, LEAST].max

        def of(env)
          path = env["REQUEST_PATH"] || env["REQUEST_URI"].to_s[%r{\A(?:[a-z]+://[^/?#]*)?([^?#]*)}i, 1]
          @limits.each { |own, limit| return limit if path.start_with?(own) && (path.bytesize == own.bytesize || path[own.size] == "/") }
          nil
        end

        def exceeds?(length, limit) = !length.nil? && length.match?(/\A\d+\z/) && length.to_i > limit
      end
    end
  end
end
