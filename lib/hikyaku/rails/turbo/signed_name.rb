# frozen_string_literal: true

require "json"

module Hikyaku
  module Turbo
    # Names of streams as pages carry them, signed by turbo-rails' own verifier, so that Turbo::StreamsChannel verifies them
    # too; but they expire.
    module SignedName
      # A name that is longer was never made here.
      MAX_BYTES = 4096
      # So many different names a stream has within the time for which one is good. Between two of them a page is rendered
      # with the same bytes, and one that morphs into its next self need not connect again.
      STEPS = 12
      private_constant :STEPS

      module_function

      def make(stream_name, now: Time.now.to_f, purpose: nil, called: stream_name)
        signed = ::Turbo.signed_stream_verifier.generate(stream_name, expires_at: expiry(now), purpose: purpose)
        return signed if signed.bytesize <= MAX_BYTES
        raise ArgumentError, "the stream name #{called[0, 60]}… is too long: signed#{", with the class and the data- attributes," unless called.equal?(stream_name)} " \
          "it may have #{MAX_BYTES} bytes, and has #{signed.bytesize}"
      end

      def open(signed, purpose: nil)
        return [nil, "invalid"] if signed.bytesize > MAX_BYTES
        name = ::Turbo.signed_stream_verifier.verify(signed, purpose: purpose)
        (name.is_a?(String) && !name.empty?) ? [name, nil] : [nil, "invalid"]
      rescue ActiveSupport::MessageVerifier::InvalidSignature => error
        # Active Support tells one from the other by these words alone.
        [nil, (error.message == "expired") ? "expired" : "invalid"]
      rescue JSON::ParserError
        [nil, "invalid"]
      end

      def expiry(now)
        seconds = Turbo.settings.expires_in or return
        step = seconds / STEPS
        Time.at((now / step).floor * step + seconds)
      end
      private_class_method :expiry
    end
  end
end
