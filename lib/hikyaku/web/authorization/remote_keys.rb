# frozen_string_literal: true

require "net/http"
require "socket"
require "timeout"
require "uri"
require_relative "../../support/clock"
require_relative "keys"
require_relative "../../support/special_addresses"

module Hikyaku
  class Web
    class Authorization
      # The keys of a JWK Set at a URL: fetched when first asked for, kept, and fetched again
      #
      # - in the background, when they are older than the server's max-age (60 seconds to a day; 10 minutes unless it
      #   says so). Until the new set is there, and when it cannot be had, the last good one serves.
      # - at once, when a token names a key that the set lacks (the issuer has rotated): three times in a row, a second
      #   apart, then every 30 seconds, however many such tokens come.
      #
      # A fetch runs on a thread of its own; who needs its result waits for a few seconds at most. Thread-safe.
      class RemoteKeys
        include Support::Clock

        FRESH_SECONDS = 600
        MIN_FRESH_SECONDS = 60
        MAX_FRESH_SECONDS = 86_400
        # Between two attempts when one has failed; and in which another look for an unknown key is earned.
        REFRESH_SECONDS = 30
        # Looks for unknown keys that can be saved up, and the seconds between two of them.
        LOOKS = 3
        LOOK_SECONDS = 1
        # Between two attempts while there is no key at all.
        FIRST_SECONDS = 3
        WAIT_SECONDS = 5

        def initialize(setting:, uri:, configured:, fetch:, logger: nil, on_change: -> {})
          @setting = setting
          @uri = uri
          @configured = configured
          @fetch = fetch
          @logger = logger
          @on_change = on_change
          @mutex = Mutex.new
          @finished = ConditionVariable.new
          @attempted_at = -Float::INFINITY
          @looked_at = -Float::INFINITY
          @earned_at = -Float::INFINITY
          @looks = LOOKS
          @stale_at = -Float::INFINITY
        end

        def keys(now)
          return current(now) if @keys
          @mutex.synchronize do
            start(now) if due?(now, FIRST_SECONDS)
            wait
          end
          @keys
        end

        # The keys after another look at the URL, if there were not too many lately.
        def keys_after_refresh(now)
          @mutex.synchronize do
            start(now) if look?(now)
            wait
          end
          @keys
        end

        # Starts a fetch in the background when the set has become stale. Costs next to nothing otherwise.
        def refresh_if_stale(now)
          return if fresh?(now) || @keys.nil?
          @mutex.synchronize { start(now) if !fresh?(now) && due?(now, REFRESH_SECONDS) }
        end

        # Starts a fetch in the background, whatever was fetched lately.
        def reload(now)
          @mutex.synchronize { start(now) unless @thread&.alive? }
        end

        def held = @keys

        def refreshable? = true

        def inspect = "#<#{self.class} #{@uri.hostname}, #{@keys ? "#{@keys.size} keys" : "not fetched"}>"

        private

        def current(now)
          refresh_if_stale(now)
          @keys
        end

        # A clock that was set back must not stop refreshes.
        def fresh?(now) = now < @stale_at && now >= @attempted_at

        def due?(now, seconds)
          return false if @thread&.alive?
          now - @attempted_at >= seconds || now < @attempted_at
        end

        # Whether another look for an unknown key is allowed; then it is taken.
        def look?(now)
          return false if @thread&.alive?
          @looks = [@looks + (now - @earned_at).abs / REFRESH_SECONDS, LOOKS].min
          @earned_at = now
          return false if @looks < 1 || (now - @looked_at).between?(0, LOOK_SECONDS)
          @looks -= 1
          @looked_at = now
          true
        end

        def start(now)
          @attempted_at = now
          @thread = Thread.new { run(now) }
          @thread.name = "hikyaku-jwks"
          @thread.report_on_exception = false
        end

        def wait
          deadline = now + WAIT_SECONDS
          while @thread&.alive? && (left = deadline - now) > 0
            @finished.wait(@mutex, left)
          end
        end

        def run(now)
          fetched = @fetch.call(@uri)
          set = JwkSet.new(fetched.body, configured: @configured, secrets: false)
          raise KeyFetch::Failed, "its set has no usable key#{reasons(set)}" if set.keys.empty?
          install(set.keys, now + seconds_fresh(fetched.max_age))
        rescue KeyFetch::Failed, JwkSet::Malformed => error
          failed(error.message)
        rescue => error
          failed(error.class.name)
        ensure
          @mutex.synchronize do
            @thread = nil
            @finished.broadcast
          end
        end

        def install(keys, stale_at)
          changed = @keys && @keys != keys
          @mutex.synchronize do
            @keys = keys
            @stale_at = stale_at
          end
          @on_change.call if changed
        end

        def failed(reason)
          @logger&.warn("#{@setting}: the key set at #{@uri.hostname} cannot be used: #{reason}" \
            "#{"; the last good one still serves" if @keys}")
        end

        def seconds_fresh(max_age) = (max_age || FRESH_SECONDS).clamp(MIN_FRESH_SECONDS, MAX_FRESH_SECONDS)

        def reasons(set) = set.skipped.empty? ? "" : " (#{set.skipped.first(3).join("; ")})"

        private_constant :FRESH_SECONDS, :MIN_FRESH_SECONDS, :MAX_FRESH_SECONDS, :REFRESH_SECONDS, :LOOKS, :LOOK_SECONDS,
          :FIRST_SECONDS, :WAIT_SECONDS
      end

      # Fetches a key set by HTTP: with timeouts, a size limit and no more trust than needed. https only, except from
      # this machine; redirects only within the same origin; addresses by {AddressPolicy}. The proxy of the
      # environment (https_proxy, no_proxy) is used; addresses are then the proxy's affair.
      class KeyFetch
        # The set could not be fetched; the message says why and holds no more of the URL than its host.
        class Failed < StandardError
        end

        # What was fetched.
        #
        # @!attribute [r] body
        #   @return [String] bytes
        # @!attribute [r] max_age
        #   @return [Integer, nil] seconds for which the server says that it is fresh
        Fetched = Struct.new(:body, :max_age)

        CONNECT_SECONDS = 2
        READ_SECONDS = 3
        # For everything together: a server that drips must not hold a refresh for ever.
        TOTAL_SECONDS = 10
        MAX_BYTES = 262_144
        MAX_REDIRECTS = 3
        REDIRECTS = [Net::HTTPMovedPermanently, Net::HTTPFound, Net::HTTPSeeOther, Net::HTTPTemporaryRedirect,
          Net::HTTPPermanentRedirect].freeze
        HEADERS = {"accept" => "application/jwk-set+json, application/json", "accept-encoding" => "identity"}.freeze

        class << self
          def uri(url)
            uri = URI.parse(url)
            raise Failed, "it is not an http(s) URL" unless uri.is_a?(URI::HTTP) && uri.hostname && !uri.hostname.empty?
            raise Failed, "it holds a user name or password" if uri.userinfo
            return uri if uri.scheme == "https" || AddressPolicy.loopback?(uri.hostname)
            raise Failed, "it must be an https URL (http is for this machine only)"
          rescue URI::InvalidURIError
            raise Failed, "it is not a valid URL"
          end
        end

        def initialize(resolver: nil)
          @resolution = resolver ? {resolver: resolver} : {}
        end

        def call(uri)
          Timeout.timeout(TOTAL_SECONDS) { follow(uri, MAX_REDIRECTS) }
        rescue AddressPolicy::Refused => error
          raise Failed, error.message
        rescue Timeout::Error
          raise Failed, "it does not answer in time"
        rescue SystemCallError, SocketError, IOError, OpenSSL::SSL::SSLError, Net::ProtocolError,
          Net::HTTPBadResponse, Net::HTTPHeaderSyntaxError => error
          raise Failed, "it cannot be reached (#{error.class})"
        end

        private

        def follow(uri, redirects)
          answer, body = get(uri)
          case answer
          when Net::HTTPOK then Fetched.new(body, max_age(answer))
          when *REDIRECTS
            raise Failed, "it redirects too often" if redirects.zero?
            follow(target(uri, answer), redirects - 1)
          else raise Failed, "it answers #{answer.code}"
          end
        end

        def get(uri)
          proxy = uri.find_proxy
          return request(uri, proxy, nil) if proxy
          addresses = AddressPolicy.addresses(uri.hostname, **@resolution)
          addresses.each_with_index do |address, index|
            return request(uri, nil, address)
          rescue SystemCallError, Net::OpenTimeout
            raise if index == addresses.size - 1
          end
        end

        # Connects to the address that was checked, not to whatever the name leads to by then.
        def request(uri, proxy, address)
          http = Net::HTTP.new(uri.hostname, uri.port, proxy&.hostname, proxy&.port, proxy&.user, proxy&.password)
          http.ipaddr = address if address
          http.use_ssl = uri.scheme == "https"
          http.open_timeout = CONNECT_SECONDS
          http.ssl_timeout = CONNECT_SECONDS
          http.read_timeout = READ_SECONDS
          http.max_retries = 0
          http.start { |connection| receive(connection, uri) }
        end

        def receive(connection, uri)
          body = +""
          answer = connection.request_get(uri.request_uri, HEADERS) do |response|
            response.read_body do |part|
              raise Failed, "it has more than #{MAX_BYTES} bytes" if body.bytesize + part.bytesize > MAX_BYTES
              body << part
            end
          end
          length = answer.content_length
          raise Failed, "it breaks off" if length && body.bytesize < length
          [answer, body]
        end

        def target(uri, answer)
          to = uri.merge(answer["location"].to_s)
          return to if [to.scheme, to.hostname, to.port] == [uri.scheme, uri.hostname, uri.port] && !to.userinfo
          raise Failed, "it redirects to another origin"
        rescue URI::Error
          raise Failed, "it redirects to an invalid URL"
        end

        def max_age(answer)
          control = answer["cache-control"].to_s
          return 0 if control.match?(/\bno-(?:cache|store)\b/i)
          control[/\bmax-age="?(\d{1,9})\b/i, 1]&.to_i
        end

        private_constant :CONNECT_SECONDS, :READ_SECONDS, :TOTAL_SECONDS, :MAX_BYTES, :MAX_REDIRECTS, :REDIRECTS,
          :HEADERS
      end

      # Which addresses a key set may be fetched from (Mercure draft-08, section "Protected Resource Metadata and
      # Authorization Server Selection": precautions against server-side request forgery).
      #
      # A host name must lead to public addresses only: otherwise whoever controls its DNS could turn the hub against
      # the network that it stands in. A host that is itself written as an address, or localhost, is what the operator
      # chose, and is used as it is. An authorization server in a private network is therefore configured by its
      # address, or its key set is given as a file.
      module AddressPolicy
        # The host leads where it may not lead, or nowhere.
        class Refused < StandardError
        end

        SYSTEM = ->(host) { Addrinfo.getaddrinfo(host, nil, nil, :STREAM).map(&:ip_address) }

        class << self
          def loopback?(host) = host.casecmp?("localhost") || kinds(host) == [:loopback]

          def addresses(host, resolver: SYSTEM)
            return [host] if kinds(host)
            found = resolver.call(host).uniq
            raise Refused, "its host has no address" if found.empty?
            allowed = host.casecmp?("localhost") ? [:loopback] : []
            return found if found.all? { |address| kinds(address) == allowed }
            raise Refused, "its host leads to a private address; configure the address itself, or a file"
          rescue SocketError
            raise Refused, "its host has no address"
          end

          private

          # The kinds of an address and of those embedded in it, without ordinary ones; nil where it is no address.
          def kinds(text) = Support::SpecialAddresses.all_in(text)&.filter_map { |address| Support::SpecialAddresses.kind(address) }&.uniq
        end

        private_constant :SYSTEM
      end
    end
  end
end
