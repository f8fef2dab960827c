# frozen_string_literal: true

require_relative "../presence"
require_relative "../turbo/door/petition"
require_relative "../turbo/door/visitor"
require_relative "../turbo/signed_name"
require_relative "../../web/problem"

module Hikyaku
  module Presence
    # Where a page asks who is here when its stream begins: `POST /hikyaku/presence`, drawn by the route `hikyaku`.
    #
    #     {"names": ["signed name", …]}
    #
    # is answered with
    #
    #     {"here": {"signed name": [[subscriber, payload], …]},
    #      "refused": {"signed name": "expired" | "invalid" | "forbidden", …}}
    #
    # By the subscribers the page knows which of the events that come meanwhile it has seen already.
    class Window
      MAX_NAMES = 10
      HEADERS = {"content-type" => "application/json", "cache-control" => "no-store", "x-content-type-options" => "nosniff"}.freeze
      private_constant :MAX_NAMES, :HEADERS

      def call(env)
        request = ActionDispatch::Request.new(env)
        names = Turbo::Door::Petition.new(request, limit: MAX_NAMES).names
        request.session_options&.[]=(:skip, true)
        [200, HEADERS.dup, [JSON.generate(answer(names.uniq, Turbo::Door::Visitor.new(request)))]]
      rescue Web::Problem => problem
        problem.response
      rescue Unknown => error
        Web::Problem.new(503, error.message, headers: {"retry-after" => "1"}).response
      end

      def inspect = "Hikyaku's presence"

      private

      def answer(names, visitor)
        refused = {}
        here = names.each_with_object({}) do |signed, found|
          name, reason = Turbo::SignedName.open(signed, purpose: PURPOSE)
          reason = "forbidden" if reason.nil? && !visitor.permitted?(name)
          reason ? refused[signed] = reason : found[signed] = Presence.subscriptions(name)
        end
        {here: here, refused: refused}
      end
    end
  end
end
