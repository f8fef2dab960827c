# frozen_string_literal: true

require_relative "../address"
require_relative "../content_coding"
require_relative "../errors"
require_relative "../response"

module Hikyaku
  module HTTP
    class Client
      # One resource that is being fetched, and all who want it: two who ask for the same share one fetch. It takes the answer, undoes its codings, and
      # says what follows from it: a redirect, a body that the cache has, a response.
      class Transaction
        OF_THE_CODING = %w[content-encoding content-length].freeze
        MOST_COPIED = 1_048_576 # bytes of a stream that the cache is given
        PART = 206
        NOTHING = "".b.freeze
        VERSIONS = %w[1.0 1.1].freeze # by their minor number
        private_constant :PART, :NOTHING, :VERSIONS, :OF_THE_CODING, :MOST_COPIED

        attr_reader :request
        attr_reader :key
        attr_reader :audience
        attr_reader :urls
        attr_reader :redirects
        attr_accessor :stored
        attr_accessor :fallback
        attr_accessor :exchange
        attr_reader :retries
        attr_reader :again_in
        attr_accessor :left_at
        attr_accessor :requested_at
        attr_reader :http_version

        def initialize(request, manager, settings, own_cookie: false, before: nil)
          @request = request
          @key = before ? before.key : request.key
          @urls = [*before&.urls, request.address.url]
          @manager = manager
          @settings = settings
          @own_cookie = own_cookie
          @audience = before ? before.hand_over : []
          @redirects = before ? before.redirects + 1 : 0
          @retries = before ? before.retries : 0
          @given = @copied = @outdated = false
          @stored = @fallback = @exchange = @left_at = nil
          clear
        end

        def outdated? = @outdated

        def outdate
          @outdated = true
        end

        def own_cookie? = @own_cookie

        def given? = @given

        def whole? = !@given || @copied

        def join(fetch) = @audience << fetch

        def leave(fetch)
          @audience.delete(fetch)
          @audience.empty?
        end

        def hand_over = @audience.tap { @audience = [] }

        def left? = !@left_at.nil?

        # What came is no answer: it is asked for again.
        def begin_again
          @retries += 1
          clear
        end

        # What the exchange tells.

        def interim(response) = stream&.interim(response)

        def answered(response)
          @status = response.status
          @http_version = VERSIONS.fetch(response.minor)
          @headers = response.fields
          @again_in = @manager.again_in(self, @status, @headers)
          @decoder = decoder(response) unless elsewhere?
          give_head if stream && !elsewhere? && !kept? && !@again_in
          refuse_length(response.content_length)
        rescue ContentCoding::Unsupported => error
          broken(BadResponse.new("the answer to #{url} cannot be decoded: #{error.message}", url: url))
        end

        # The rest has to be waited for. A redirect is not: a server may never end it.
        def unfinished
          @manager.led_elsewhere(self, @status, @headers) if !left? && elsewhere? && @error.nil?
        end

        def came(bytes)
          return if @error
          return take(bytes) unless @decoder
          @decoder.feed(bytes)
          decode
        end

        def finished(seconds)
          @seconds = seconds
          conclude unless @full && @decoder
        end

        def failed(error) = @manager.failed(self, error)

        def restart
          @given = @copied = false if @given && stream&.anew
          clear unless @given
          !@given
        end

        def elsewhere? = @settings.max_redirects.positive? && Redirection.elsewhere?(@status, @headers)

        def kept? = (@status == 304 && !@stored.nil?) || (@status >= 500 && !@fallback.nil?)

        def stream = @audience.first.is_a?(Stream) ? @audience.first : nil

        # What brings the pieces, for a stream that cannot take more.
        def pause
          @full = true
          @manager.connection_of(self)&.pause
        end

        # What came and is not decoded yet goes first.
        def resume
          @full = false
          decode if @decoder
          return if @full
          @seconds ? conclude : @manager.resume(self)
        end

        # It is long: what was asked for behind it is asked for elsewhere.
        def step_aside = @manager.step_aside(self)

        private

        def url = @request.address.url

        def clear
          @body = NOTHING
          @status = @headers = @decoder = @error = @seconds = @again_in = nil
          @full = false
        end

        # A part of what is encoded cannot be decoded: RFC 9110, section 14.2. A body whose coding nobody knows (some servers say none, utf-8 or aws-chunked)
        # is given as it came, with its Content-Encoding, as browsers do.
        def decoder(response)
          return if response["content-encoding"].nil?
          return if response.status == PART || @settings.codings.nil? || @request["accept-encoding"] || @request.method == "HEAD" || response.framing == :none
          codings = response.values("content-encoding").flat_map { |value| value.split(",") }
          return unless ContentCoding.known?(codings)
          ContentCoding.decoder(codings, max_bytes: stream ? nil : @settings.max_body_bytes)
        end

        def take(bytes)
          return pass_on(bytes) if @given
          append(bytes)
          refuse_length(@body.bytesize)
        end

        # As much as is taken: a little may become very much.
        def decode
          while !@full && !@error && (bytes = @decoder.next)
            take(bytes)
          end
        rescue ContentCoding::TooLarge
          too_large
        rescue ContentCoding::Corrupt => error
          broken(BadResponse.new("the answer to #{url} cannot be decoded: #{error.message}", url: url))
        end

        # All came, and was decoded.
        def conclude
          seconds, @seconds = @seconds, nil
          came_last
          return @manager.failed(self, @error) if @error
          @manager.answered(self, status: @status, headers: @headers, body: @body, seconds: seconds)
        end

        # A stream's pieces are kept as well, for the cache, as long as there are few of them.
        def pass_on(bytes)
          stream&.push(bytes)
          return unless @copied
          @copied = @settings.cache && @body.bytesize + bytes.bytesize <= MOST_COPIED
          @copied ? append(bytes) : @body = NOTHING
        end

        # A body that comes in one piece is not copied; a stream has its pieces for itself.
        def append(bytes)
          return @body << bytes unless @body.empty?
          @body = (@given || bytes.frozen?) ? bytes.dup : bytes
        end

        # What was encoded is not any more.
        def give_head
          @given = @copied = true
          headers = @decoder ? @headers.reject { |field| OF_THE_CODING.include?(field.first) } : @headers
          head = Response.new(status: @status, headers: headers, body: "", url: url, http_version: @http_version)
          error = stream.terms.objection(head)
          error ? broken(error) : stream.head_came(head, self)
        end

        def came_last
          return if @error || @decoder.nil?
          @decoder.finish
          @headers = @headers.reject { |field| OF_THE_CODING.include?(field.first) }.freeze unless @decoder.mislabelled?
        rescue ContentCoding::Corrupt => error
          @error = BadResponse.new("the answer to #{url} cannot be decoded: #{error.message}", url: url)
        end

        # What leads elsewhere is followed however much there is of it, and is soon left.
        def refuse_length(bytes)
          too_large if !@given && bytes && bytes > @settings.max_body_bytes && @request.method != "HEAD" && !elsewhere?
        end

        def too_large = broken(ResponseTooLarge.new("the answer to #{url} has more than #{@settings.max_body_bytes} bytes (max_body_bytes:)", url: url))

        # The rest is not wanted; who asked is told at once.
        def broken(error)
          return if @error
          @error = error
          @body = NOTHING
          @exchange.cancel!
          @manager.failed(self, error)
        end
      end

      # One request on its way, until its answer is whole: what is repeated when a connection breaks off.
      #
      # Its listener is told `answered(response)`, then `came(bytes)` as often as needed, and `unfinished` whenever all that came so far was told and it was
      # not the end, then `finished(seconds)`; or `failed(error)`. When
      # the answer has to be fetched anew after it began, it is asked `restart`, and says whether that can be.
      class Exchange
        # RFC 9110, section 9.2.2: a repetition that fails is not repeated.
        MOST_ATTEMPTS = 2
        # Bytes of an answer that says that nothing has changed.
        UNCHANGED_BYTES = 300.0
        VALIDATORS = %w[if-none-match if-modified-since].freeze
        private_constant :MOST_ATTEMPTS, :UNCHANGED_BYTES, :VALIDATORS

        attr_reader :request
        attr_reader :listener
        attr_reader :number
        attr_accessor :sent_at
        attr_accessor :begun_at

        attr_accessor :ends_at
        attr_accessor :suspected

        def initialize(request, listener, number:)
          @request = request
          @listener = listener
          @number = number
          @attempts = 0
          @sent_at = @begun_at = nil
          @canceled = @solitary = @led_elsewhere = false
          @conditional = VALIDATORS.any? { |name| request[name] } unless request.headers.empty?
        end

        def conditional? = !!@conditional

        def expected_bytes(mean) = conditional? ? UNCHANGED_BYTES : mean

        def pipelined? = !@solitary && @request.pipelined?

        # From now on it goes by itself: there was doubt about the answer that it had.
        def solitary! = @solitary = true

        def solitary? = @solitary

        # It leads elsewhere, as its head says: what is left of it is wanted as far as it is soon there.
        def led_elsewhere! = @canceled = @led_elsewhere = true

        def led_elsewhere? = @led_elsewhere

        # Nobody wants the answer any more.
        def cancel! = @canceled = true

        def canceled? = @canceled

        # It is written, and counts as an attempt unless it turns out that the server never looked at it.
        def sent!(now)
          @sent_at = now
          @begun_at = nil
        end

        # It was this one's turn, and the answer did not come, or not all of it: the server may have heard it.
        def tried! = @attempts += 1

        def again? = @request.idempotent? && @attempts < MOST_ATTEMPTS && (@begun_at.nil? || @listener.restart)

        def inspect = "#<#{self.class} #{@number} #{@request.inspect}>"
      end

      # Where an answer leads, and what is asked there: RFC 9110, section 15.4.
      class Redirection
        STATUSES = [301, 302, 303, 307, 308].freeze
        # After these a POST becomes a GET.
        BECOMES_GET = [301, 302].freeze
        # What is meant for one origin is not told to another.
        CONFIDENTIAL = %w[authorization cookie proxy-authorization].freeze
        # A request that has no body any more says nothing of one.
        OF_A_BODY = /\Acontent-|\A(?:digest|repr-digest|last-modified)\z/
        private_constant :STATUSES, :BECOMES_GET, :CONFIDENTIAL, :OF_A_BODY

        def self.elsewhere?(status, headers) = STATUSES.include?(status) && !headers.assoc("location").nil?

        def initialize(most)
          @most = most
        end

        def follow(request, status, location, before:, own_cookie:)
          address = address(request, location)
          refuse(request, "more than #{@most} redirects") if before >= @most
          refuse(request, "a redirect from https to #{address.url}, where everybody reads along") if request.address.origin.tls? && !address.origin.tls?
          followed(request, status, address, headers(request, address, own_cookie))
        end

        private

        def address(request, location)
          Address.parse(location.dup.force_encoding(Encoding::UTF_8), base: request.address)
        rescue InvalidURL => error
          raise BadRedirect.new("#{request.address.url} redirects to what is no URL: #{error.message}", url: request.address.url)
        end

        def headers(request, address, own_cookie)
          dropped = ["host"]
          dropped << "cookie" unless own_cookie
          dropped.concat(CONFIDENTIAL) unless address.origin == request.address.origin
          request.headers.reject { |field| dropped.include?(field.first) }
        end

        def followed(request, status, address, headers)
          if (status == 303 && request.method != "HEAD") || (BECOMES_GET.include?(status) && request.method == "POST")
            return request.redirected(address, method: "GET", headers: headers.reject { |field| field.first.match?(OF_A_BODY) }, body: nil)
          end
          refuse(request, "a redirect with a body that was read already") if request.once?
          request.redirected(address, headers: headers, body: request.body)
        end

        def refuse(request, why) = raise(BadRedirect.new("#{request.address.url} leads to #{why}", url: request.address.url))
      end
    end
  end
end
