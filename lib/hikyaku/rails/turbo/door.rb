# frozen_string_literal: true

require "time"
require_relative "../presence"
require_relative "../turbo"
require_relative "../../web/problem"
require_relative "door/petition"
require_relative "door/visitor"
require_relative "signed_name"
require_relative "signed_stream"

module Hikyaku
  module Turbo
    # Where a page asks for the token with which it may follow its streams: `POST /hikyaku/streams`, drawn by the route
    # `hikyaku`.
    #
    #     {"names": ["signed name of a stream", …]}
    #
    # is answered with
    #
    #     {"hub": URL, "token": JWT, "expires_at": seconds since 1970,
    #      "topics": {"signed name": topic, …}, "refused": {"signed name": "expired" | "invalid" | "forbidden" | "unsupported", …},
    #      "failed": ["signed name", …], "singly": ["signed name", …]}
    #
    # where `failed` lists the names for which the application raised an error, which is reported; the page asks again for them. Where it
    # raised one for all of them, the request fails with it. `singly` lists the names whose answer is not that of their topic: a class of Action Cable was asked (Inquiry), or the
    # application was given parameters. A page asks for each of them itself, and again whenever an element with it comes,
    #
    # and, of names that are signed for seeing who is here (Presence), with
    #
    #     {"patterns": {"signed name": URL pattern of the subscriptions of the topic, …}}
    #
    # The token grants these topics and nothing else; where no name is granted it is null. A page asks again before the
    # token expires: then everything is decided anew.
    #
    # Whose token it is, `hikyaku_subject` of ApplicationController says; what `hikyaku_payload` says, if there is such a method,
    # everybody may see who may see the hub's subscriptions.
    #
    # The session is read and never written: an answer that comes late takes nothing back that another has put there. A visitor
    # without one is known again by a cookie of the door's own (Keepsake).
    class Door
      HEADERS = {"content-type" => "application/json", "cache-control" => "no-store", "x-content-type-options" => "nosniff"}.freeze
      private_constant :HEADERS

      def initialize(mount)
        @mount = mount
      end

      def call(env)
        request = ActionDispatch::Request.new(env)
        names = Petition.new(request, limit: most_names).names
        request.session_options&.[]=(:skip, true)
        visitor = Visitor.new(request)
        document = answer(names, visitor)
        # Clocks of browsers are often wrong: from this one they count.
        [200, HEADERS.merge("date" => Time.now.httpdate, **visitor.headers), [JSON.generate(document)]]
      rescue Web::Problem => problem
        problem.response
      end

      def inspect = "Hikyaku's tokens for Turbo Streams"

      private

      def config = @mount.settings.config

      # No token and no stream has more topics.
      def most_names = [Petition::MAX_NAMES, config.max_token_topics, config.max_matchers].min

      def answer(names, visitor)
        payload = {granted: 0, refused: {}, subject: nil}
        ActiveSupport::Notifications.instrument("streams.hikyaku", payload) do
          topics, patterns, refused, failed, singly = judge(names, visitor)
          payload.update(granted: topics.size, refused: refused.values.tally, subject: visitor.subject)
          granted = {hub: visitor.hub, **pass(topics.values, patterns.values, visitor), topics: topics, refused: refused}
          granted.merge({patterns: patterns, failed: failed, singly: singly}.reject { |_field, values| values.empty? })
        end
      end

      def judge(names, visitor)
        topics, patterns, refused, failures, singly = {}, {}, {}, {}, []
        names.uniq.each do |signed|
          stream, reason, present = read(signed)
          singly << signed unless stream.nil? || stream.plain?
          begin
            name, reason = visitor.admit(stream) if stream
          rescue => error
            next failures[signed] = error
          end
          next refused[signed] = reason if reason
          topics[signed] = present ? Presence.topic(name) : Turbo.topic(name)
          patterns[signed] = Presence.pattern(name, config.hub_url) if present
        end
        raise failures.values.first if failures.any? && topics.empty? && refused.empty?
        failures.each_value { |error| report(error) }
        [topics, patterns, refused, failures.keys, singly]
      end

      # An error of one stream does not keep the others from the page.
      def report(error)
        ::Rails.logger&.error("Hikyaku: a page gets one stream less for the time being: #{error.full_message(highlight: false)}")
        ::Rails.error.report(error, handled: true, severity: :error, source: "hikyaku")
      end

      def read(signed)
        stream, reason = SignedStream.open(signed)
        return [stream, reason, false] unless reason && Presence.settings.on?
        name, why = SignedName.open(signed, purpose: Presence::PURPOSE)
        (why == "invalid") ? [nil, reason, false] : [name && SignedStream.new(name, nil, {}), why, true]
      end

      def pass(topics, patterns, visitor)
        seconds = Turbo.settings.token_expires_in
        # Before the token is made: it may expire a little later than is said, never earlier.
        expires_at = Time.now.to_i + seconds
        grants = topics.uniq + patterns.uniq.map { |pattern| {"match" => pattern, "match_type" => "urlpattern"} }
        if grants.size > [config.max_token_topics, config.max_matchers].min
          raise Web::Problem.new(413, "these #{topics.size} streams have more topics than one token can grant: follow fewer at once")
        end
        token = visitor.token(grants, expires_in: seconds, seen: patterns.any?) unless grants.empty?
        if token && token.bytesize > config.max_token_bytes
          raise Web::Problem.new(413, "a token for these #{topics.size} streams is larger than the hub accepts: follow fewer at once")
        end
        {token: token, expires_at: expires_at}
      end
    end
  end
end
