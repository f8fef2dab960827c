# frozen_string_literal: true

require_relative "../content_coding"
require_relative "../response"
require_relative "redirection"

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
    end
  end
end
