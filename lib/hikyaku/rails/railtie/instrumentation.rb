# frozen_string_literal: true

module Hikyaku
  class Railtie < ::Rails::Railtie
    # ActiveSupport::Notifications of what the application does. Neither data nor tokens are told.
    #
    #     publish.hikyaku       topics, private, type, bytes, id
    #     disconnect.hikyaku    subject, revoke, count
    #     streams.hikyaku       granted, refused, subject  (a page asked for its Turbo Streams; see Turbo::Door)
    #     request.hikyaku       method, path, status       (a request to the hub, when it is answered; see Mount)
    #     request.hikyaku_http  method, url, status, bytes, cached, seconds, error  (one of HTTP::Client; see HTTP::Client::Notice)
    module Instrumentation
      # See {Hikyaku.publish}.
      def publish(topics, data = "", **options)
        data = options.delete(:data) { data }
        data = data.to_json unless data.is_a?(String)
        payload = {topics: Array(topics), private: !!options[:private], type: options[:type], bytes: data.bytesize, id: nil}
        ActiveSupport::Notifications.instrument("publish.hikyaku", payload) { payload[:id] = super(topics, data, **options) }
      end

      # See {Hikyaku.disconnect}.
      def disconnect(subject:, revoke: false)
        payload = {subject: subject, revoke: revoke, count: nil}
        ActiveSupport::Notifications.instrument("disconnect.hikyaku", payload) { payload[:count] = super(subject: subject, revoke: revoke) }
      end
    end
  end
end
