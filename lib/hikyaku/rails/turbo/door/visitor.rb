# frozen_string_literal: true

require "openssl"
require_relative "inquiry"
require_relative "keepsake"

module Hikyaku
  module Turbo
    class Door
      # Who asks, as the application sees it: through an instance of its ApplicationController that has the request, so that
      # `session`, `cookies` and `current_user` are there, and that runs no callbacks.
      class Visitor
        SALT = "hikyaku anonymous subjects"
        private_constant :SALT

        def initialize(request)
          @request = request
          # Who signs out while the application is asked has a token that is older than that.
          @asked_at = Process.clock_gettime(Process::CLOCK_REALTIME)
        end

        def admit(stream)
          name, reason = stream.class_name ? inquiry.ask(stream) : [stream.name, nil]
          return [nil, reason] if reason
          permitted?(name, stream.params) ? [name, nil] : [nil, "forbidden"]
        end

        def permitted?(stream_name, params = {})
          decision = Turbo.authorization or return true
          values = [stream_name, @request, params.with_indifferent_access].first(values_of(decision))
          answer = decision.is_a?(Proc) ? controller.instance_exec(*values, &decision) : decision.call(*values)
          !!answer
        end

        # Whose token it is: what the application calls the user, else the session, else somebody whom the door knows again. By it
        # Hikyaku.disconnect finds the streams, and a stream takes a new token only of the same.
        def subject = @subject ||= asked(:hikyaku_subject)&.to_s.presence || of_session || (@keepsake = Keepsake.new(@request)).subject

        def hub = controller.hikyaku_url

        def token(topics, expires_in:, seen: false)
          payload = asked(:hikyaku_payload)
          payload = {"id" => subject}.merge(payload.to_h.transform_keys(&:to_s).compact) if seen
          controller.hikyaku_token(subscribe: topics, subject: subject, expires_in: expires_in, payload: payload, issued_at: @asked_at).tap { @good_for = expires_in }
        end

        def headers = (@keepsake && @good_for) ? {"set-cookie" => @keepsake.cookie(@good_for)} : {}

        private

        def inquiry = @inquiry ||= Inquiry.new(@request)

        # The third only for a callable that names it: methods and lambdas take no more than they name.
        def values_of(decision)
          called = decision.respond_to?(:parameters) ? decision : decision.method(:call)
          called.parameters.count { |kind, _name| %i[req opt].include?(kind) }.clamp(2, 3)
        end

        def controller
          @controller ||= begin
            type = "ApplicationController".safe_constantize || ActionController::Base
            type.new.tap do |controller|
              controller.set_request!(@request)
              controller.set_response!(type.make_response!(@request))
            end
          end
        end

        def asked(name) = (controller.send(name) if controller.respond_to?(name, true))

        # Others may see a subject, and nobody a session's id.
        def of_session
          id = @request.session.id or return
          id = id.public_id if id.respond_to?(:public_id)
          key = ::Rails.application.key_generator.generate_key(SALT, 32)
          "session:#{OpenSSL::HMAC.hexdigest("SHA256", key, id.to_s)[0, 32]}"
        end
      end
    end
  end
end
