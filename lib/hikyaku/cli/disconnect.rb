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
        require_relative "../client/publisher"
        publisher = Publisher.new(hub, token: publisher_token([topic(subject)]), insecure: !!@insecure)
        count = publisher.disconnect(subject: subject, revoke: !!@revoke)
        stdout.puts("#{count} #{(count == 1) ? "stream" : "streams"} closed")
      ensure
        publisher&.close
      end

      # The path that Publisher#disconnect deletes: a token that grants publishing to it as a topic suffices.
      def topic(subject)
        path = hub[%r{\A(?:https?://[^/?#]+|unix:(?://)?[^:]*:?)(/[^?#]*)?}i, 1] || config.path
        # RFC 3986, section 2.3: everything but unreserved characters.
        "#{path}/subscribers/#{subject.b.gsub(/[^A-Za-z0-9._~-]/n) { |byte| format("%%%02X", byte.ord) }}"
      end
    end
  end
end
