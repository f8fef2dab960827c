# frozen_string_literal: true

require "openssl"
require "time"
require_relative "../check"

module Hikyaku
  class Doctor
    module Checks
      # Whether clients can believe who the hub is, and for how long.
      class Certificate < Check
        about "the certificate"

        # The share of its life after which it should have been renewed: those who renew do so when a third is left.
        LATE = 0.2
        DAY = 86_400
        private_constant :LATE, :DAY

        private

        def perform
          return [] unless place.tls?
          client.connect(verify: false) { |connection| judge(connection.tls) }
        rescue ConnectionFailed
          # The next check says so.
          []
        end

        def judge(tls)
          certificate = tls.peer_cert
          wrong(tls, certificate)&.then do |found|
            visit.stop("clients refuse the certificate")
            return found
          end
          left = certificate.not_after - Time.now
          share = left / (certificate.not_after - certificate.not_before)
          valid = "valid for #{Words.long(left)} more"
          return warning("#{valid}, which is the last fifth of its life: renewal does not work", :certificate, seconds_left: left) if share < LATE
          ok("of #{Words.quote(names(certificate))}, #{valid}, #{tls.ssl_version}", seconds_left: left)
        end

        def wrong(tls, certificate)
          now = Time.now
          if now > certificate.not_after then failed("it has expired #{Words.long(now - certificate.not_after)} ago", :certificate)
          elsif now < certificate.not_before then failed("it is not valid before #{certificate.not_before.utc.iso8601}: or the clock here is wrong", :certificate)
          elsif !OpenSSL::SSL.verify_certificate_identity(certificate, place.host)
            failed("it is for #{Words.quote(names(certificate))}, not for #{place.host}", :certificate)
          elsif tls.verify_result != OpenSSL::X509::V_OK
            failed("it is not by an authority that is trusted here: #{reason(tls.verify_result)}", :chain)
          end
        end

        def names(certificate)
          extension = certificate.extensions.find { |each| each.oid == "subjectAltName" }
          extension ? extension.value.gsub(/(?:DNS|IP Address):/, "") : certificate.subject.to_s
        end

        def reason(code)
          {OpenSSL::X509::V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT => "it is signed by itself",
           OpenSSL::X509::V_ERR_SELF_SIGNED_CERT_IN_CHAIN => "the chain ends with an authority of its own",
           OpenSSL::X509::V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY => "the certificate of who signed it is missing",
           OpenSSL::X509::V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE => "the certificate of who signed it is missing"}
            .fetch(code) { "OpenSSL's error #{code}" }
        end
      end
    end
  end
end
