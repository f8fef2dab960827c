# frozen_string_literal: true

require "json"
require_relative "url_encoded_form"
require_relative "problem"

module Hikyaku
  class Web
    # `DELETE {hub path}/subscribers/{subject}`: closes a subject's streams. Not part of the Mercure protocol.
    #
    # It needs a publisher's token that grants `publish` on that path as a topic (nobody can publish there otherwise: it
    # lies in the reserved namespace), or on `*`. With `?revoke=1` the subject's older tokens are refused from now on.
    class Disconnect
      def initialize(hub, authenticator, &disconnect)
        @hub = hub
        @authenticator = authenticator
        @disconnect = disconnect
        @root = "#{hub.hub_path}/subscribers/"
      end

      def call(request)
        access = @authenticator.publisher(request)
        path = request.path
        @authenticator.forbidden!("the token does not grant publishing to #{path}") unless access.publish?([@hub.topics[path]])
        subject = URLEncodedForm.text(path.delete_prefix(@root))
        raise Problem.new(400, "the subject is missing, or not valid UTF-8 without NUL") if subject.nil? || subject.empty?
        count = @disconnect.call(subject: subject, revoke: request.query.any? { |name, value| name == "revoke" && value != "0" })
        body = JSON.generate(subject: subject, disconnected: count)
        [200, {"content-type" => "application/json", "content-length" => body.bytesize.to_s, "cache-control" => "no-store"}, [body]]
      end
    end
  end
end
