# frozen_string_literal: true

require_relative "client"

module Hikyaku
  module CLI
    # `hikyaku disconnect`
    class Disconnect < Client
      summary "Close all streams of a subject: of those who came with a token that names it as sub."
      usage "hikyaku disconnect [OPTION…] SUBJECT"
      examples(
        "hikyaku disconnect --dev urn:user:42",
        "hikyaku disconnect --config hub.yml --revoke urn:user:42"
      )

      private

      def operands = %w[SUBJECT]

      def options(parser)
        parser.separator("\n  SUBJECT   the sub of the tokens\n\nWhat:")
        parser.on("--revoke", *wrap("Also refuse tokens of the subject that were issued before now")) { @revoke = true }
        hub_options(parser)
      end

      def call(subject = nil)
        raise UsageError, "give a SUBJECT; see hikyaku disconnect --help" if subject.to_s.empty?
        require "json"
        require_relative "../publisher/endpoint"
        answer = request(subject)
        raise Failed, refusal(answer) unless answer.code == "200"
        count = count_of(answer.body)
        stdout.puts("#{count} #{(count == 1) ? "stream" : "streams"} closed")
      end

      def count_of(body)
        JSON.parse(body).fetch("disconnected")
      rescue JSON::ParserError, KeyError, NoMethodError
        raise Failed, "the hub's answer is not understood; is it Hikyaku's?"
      end

      # `DELETE {hub path}/subscribers/{subject}`, with a token that grants publishing to that path as a topic.
      def request(subject)
        endpoint = Publisher::Endpoint.new(hub, open_timeout: 5, read_timeout: 10, write_timeout: 10)
        path = "#{endpoint.uri.path}/subscribers/#{escape(subject)}"
        token = publisher_token([path])
        endpoint.confidential! unless @insecure
        connection = endpoint.connection
        connection.start { |http| http.delete("#{path}#{"?revoke=1" if @revoke}", "authorization" => "Bearer #{token}", "host" => endpoint.host) }
      rescue *Publisher::Endpoint::NETWORK_ERRORS => error
        raise Failed, "#{endpoint} cannot be reached: #{error.message}"
      end

      # RFC 3986, section 2.3: everything but unreserved characters.
      def escape(text) = text.b.gsub(/[^A-Za-z0-9._~-]/n) { |byte| format("%%%02X", byte.ord) }

      def refusal(answer) = ["the hub refused (#{answer.code})", detail_of(answer)].compact.join(": ")

      def detail_of(answer)
        JSON.parse(answer.body.to_s)["detail"] if answer["content-type"].to_s.start_with?("application/problem+json")
      rescue JSON::ParserError, NoMethodError
        nil
      end
    end
  end
end
