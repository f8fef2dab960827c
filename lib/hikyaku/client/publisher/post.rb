# frozen_string_literal: true

require "net/http"

module Hikyaku
  class Publisher
    # A request whose answer is read also where the connection was reset while it was sent: servers that refuse a body they do not
    # read reset it behind the answer (RFC 9112 section 9.6). Net::HTTP reads on after EPIPE alone.
    class Post < Net::HTTP::Post
      # Called by Net::HTTP, to send it.
      def exec(...)
        super
      rescue Errno::ECONNRESET
        raise Errno::EPIPE
      end
    end
  end
end
