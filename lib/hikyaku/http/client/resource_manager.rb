# frozen_string_literal: true

require_relative "../content_coding"
require_relative "../response"
require_relative "redirection"

module Hikyaku
  module HTTP
    class Client
      # One resource that is being fetched, and all who want it: two who ask for the same share one fetch. It takes the answer, undoes its codings, and
      # says what follows from it: a redirect, a body that the cache has, a response.
      class ResourceManager
        OF_THE_CODING = %w[content-encoding content-length].freeze
        MOST_COPIED = 1_048_576 # bytes of a stream that the cache is given
        PART = 206
        NOTHING = "".b.freeze
        VERSIONS = %w[1.0 1.1].freeze # by their minor number
        private_constant :PART, :NOTHING, :VERSIONS, :OF_THE_CODING, :MOST_COPIED

        # @return [Request] what is asked for now: after redirects another than at first
        attr_reader :request
        # @return [Array] see {Request#key}, of what was asked for at first
        attr_reader :key
        # @return [Array<Fetch>]
        attr_reader :audience
        # @return [Array<String>] the URLs that were asked for, the last one now
        attr_reader :urls
        # @return [Integer] redirects that were followed
        attr_reader :redirects
        # @return [Cache::Stored, nil] what the server was asked about
        attr_accessor :stored
        # @return [Cache::Stored, nil] what is better than nothing
        attr_accessor :fallback
        # @return [Exchange, nil]
        attr_accessor :exchange
        # @return [Integer] times that the server was asked again, as it wanted
        attr_reader :retries
        # @return [Numeric, nil] seconds after which it is asked again; nil: what came is the answer
        attr_reader :again_in
        # @return [Integer, nil] changes that there had been when what is asked for was left for what its answer leads to
        attr_accessor :left_at
        # @return [Float] seconds of the wall clock, when it was asked for
        attr_accessor :requested_at
        # @return [String, nil] see {Response#http_version}
        attr_reader :http_version

        # @param request [Request]
        # @param manager [RequestManager]
        # @param settings [Settings]
        # @param own_cookie [Boolean] whether the caller gave the request its cookies, and not a jar
        # @param before [ResourceManager, nil] that of the redirect which leads to it, and whose audience it takes
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

        # @return [Boolean] whether what comes may be from before a change, and is kept for nobody else
        def outdated? = @outdated

        # @return [void]
        def outdate
          @outdated = true
        end

        # @return [Boolean] whether the caller gave the request its cookies, and not a jar
        def own_cookie? = @own_cookie

        # @return [Boolean] whether a stream has got something of it
        def given? = @given

        # @return [Boolean] whether the whole body is there, for the cache
        def whole? = !@given || @copied

        # @return [void]
        def join(fetch) = @audience << fetch

        # @return [Boolean] whether nobody wants it any more
        def leave(fetch)
          @audience.delete(fetch)
          @audience.empty?
        end

        # @return [Array<Fetch>] all who wanted it, and want something else now
        def hand_over = @audience.tap { @audience = [] }

        # @return [Boolean] whether its answer led elsewhere: nobody but the cache wants what is left of it
        def left? = !@left_at.nil?

        # What came is no answer: it is asked for again.
        #
        # @return [void]
        def begin_again
          @retries += 1
          clear
        end

        # What the exchange tells.

        # @param response [Parser::Response] which says something before the answer
        # @return [void]
        def interim(response) = stream&.interim(response)

        # @param response [Parser::Response]
        # @return [void]
        def answered(response)
          @status = response.status
          @http_version = VERSIONS.fetch(response.minor)
          @headers = response.fields
          @again_in = @manager.again_in(self, @status, @headers) if @settings.retries.positive?
          @decoder = decoder(response)
          give_head if stream && !elsewhere? && !kept? && !@again_in
          refuse_length(response.content_length) unless elsewhere?
        rescue ContentCoding::Unsupported => error
          broken(BadResponse.new("the answer to #{url} cannot be decoded: #{error.message}", url: url))
        end

        # The rest has to be waited for. A redirect is not: a server may never end it.
        #
        # @return [void]
        def unfinished
          @manager.led_elsewhere(self, @status, @headers) if !left? && elsewhere? && @error.nil?
        end

        # @param bytes [String]
        # @return [void]
        def came(bytes)
          return if @error
          return take(bytes) unless @decoder
          @decoder.feed(bytes)
          decode
        end

        # @param seconds [Float]
        # @return [void]
        def finished(seconds)
          @seconds = seconds
          conclude unless @full && @decoder
        end

        # @param error [RequestFailed]
        # @return [void]
        def failed(error) = @manager.failed(self, error)

        # @return [Boolean] whether the answer may come once more, from its beginning
        def restart
          @given = @copied = false if @given && stream&.anew
          clear unless @given
          !@given
        end

        # @return [Boolean] whether what came leads elsewhere
        def elsewhere? = @settings.max_redirects.positive? && Redirection.elsewhere?(@status, @headers)

        # @return [Boolean] whether the answer is what the cache has, or may be
        def kept? = (@status == 304 && !@stored.nil?) || (@status >= 500 && !@fallback.nil?)

        # @return [Stream, nil]
        def stream = @audience.first.is_a?(Stream) ? @audience.first : nil

        # What brings the pieces, for a stream that cannot take more.
        def pause
          @full = true
          @manager.connection_of(self)&.pause
        end

        # What came and is not decoded yet goes first.
        #
        # @return [void]
        def resume
          @full = false
          decode if @decoder
          return if @full
          @seconds ? conclude : @manager.resume(self)
        end

        # It is long: what was asked for behind it is asked for elsewhere.
        #
        # @return [void]
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
          error = @manager.objection(head)
          error ? broken(error) : stream.head_came(head, self)
        end

        def came_last
          return if @error || @decoder.nil?
          @decoder.finish
          @headers = @headers.reject { |field| OF_THE_CODING.include?(field.first) }.freeze unless @decoder.mislabelled?
        rescue ContentCoding::Corrupt => error
          @error = BadResponse.new("the answer to #{url} cannot be decoded: #{error.message}", url: url)
        end

        def refuse_length(bytes)
          too_large if !@given && bytes && bytes > @settings.max_body_bytes && @request.method != "HEAD"
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
    end
  end
end
