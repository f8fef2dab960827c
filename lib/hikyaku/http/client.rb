# frozen_string_literal: true

require_relative "../support/clock"
require_relative "../http"
require_relative "client/fetch"
require_relative "client/route"
require_relative "client/driver"
require_relative "client/memory"
require_relative "client/dispatcher"
require_relative "client/settings"
require_relative "part"
require_relative "request"
require_relative "request/content"

begin
  require "hikyaku/native" # reads heads of responses
rescue LoadError
  nil # so does Ruby
end

module Hikyaku
  module HTTP
    # A client of HTTP/1.1 that keeps slow, long links full: it finds out which servers take several requests at once (pipelining), asks them as much as
    # the link carries, and goes back to one at a time where that goes wrong.
    #
    #     client = Hikyaku::HTTP::Client.new
    #     client.get("https://example.com/").text
    #     client.get("https://example.com/a.png", "https://example.com/b.png")        # => two outcomes, in this order
    #     client.get(urls) { |outcome| puts outcome.url, outcome.status }             # each as soon as it is there
    #     client.open("https://example.com/large") { |stream| stream.each { |piece| file << piece } }
    #     puts client.explain("https://example.com")                                  # why it is pipelined, or why not
    #
    # Any number of threads and fibers may share one. It has no thread of its own: who waits moves everything that is under way. Cookies are kept only
    # where a jar is given. TLS is verified. HTTP/2 is not spoken: for that there is httpx.
    #
    # RFC 9110, RFC 9111 (a private cache in memory, if asked) and RFC 9112; requests that may change something are never pipelined, and never sent twice unless
    # their method allows it.
    class Client
      # @param memory [String, Memory, nil] a file that keeps for a day what is known of servers; nil: it is forgotten with the client
      # @param cache [Boolean, Integer, Cache] whether answers are kept in memory, as far as they allow it; true: 32 MiB of them; a number of bytes
      # @param timeouts [Hash{Symbol => Numeric}] seconds, see {Timeouts#initialize}; and total: for a request with all its redirects
      # @param max_connections [Integer] to one origin
      # @param pipelining [Boolean] false has each request wait for the answer before it, on several connections
      # @param keep_idle [Numeric] seconds that a connection is kept when nothing is under way
      # @param max_redirects [Integer] that are followed; with 0 they are answers as any other
      # @param max_body_bytes [Integer] of a body, decoded; streams may be longer
      # @param user_agent [String, nil] said in the first request of a connection; in a slow uplink each byte counts
      # @param decode [Boolean] whether gzip, and br and zstd where the gems brotli and zstd-ruby are there, are offered and undone. A body with a coding that
      #   nobody knows is given as it came, and the field Content-Encoding says so: as browsers do, and curl without --compressed
      # @param headers [Hash] of every request. When a redirect leads to another origin, Authorization, Cookie and Proxy-Authorization do not go along; all
      #   others do, as with curl and browsers: a key in a field such as X-API-Key is told to whoever a server leads to. With max_redirects: 0 nobody is led
      # @param cookies [#parse, #cookies, nil] an HTTP::CookieJar of the gem http-cookie
      # @param proxy [Symbol, String, nil] :environment (http_proxy, https_proxy, all_proxy and no_proxy, see {Environment}), "http://HOST:PORT", or nil for none
      # @param unix_socket [String, nil] the path of a socket on which every origin is reached, as with curl's --unix-socket; Host and TLS are those of the URL
      # @param ca_file [String, nil] certificates to trust in place of the system's, as PEM
      # @param verify [Boolean] false is for tests
      # @param client_cert [String, OpenSSL::X509::Certificate, Array<OpenSSL::X509::Certificate>, nil] who this client is, for servers that ask: a file as
      #   PEM, or objects; those that vouch for it come after it. Every origin that asks is shown it
      # @param client_key [String, OpenSSL::PKey::PKey, nil] its key: a file as PEM, or an object; nil: in the file of the certificate
      # @param client_key_password [String, nil] of that file
      # @param retries [Integer] times that a request which is idempotent (RFC 9110, section 9.2.2) is asked again, when the answer is a 408, 429 or 503: after
      #   the Retry-After that it says (section 10.2.3), else after half a second, a second, and so on
      # @param max_retry_wait [Numeric] seconds; where a server wants more, or more than what is left of the request's timeout, its answer is given as it is
      # @param raise_for_status [Boolean] whether an answer of the status 400 or above is a failure, {BadStatus}
      # @param instrumenter [#instrument, nil] is told of each request, as ActiveSupport::Notifications is: see {Notification}
      # @param destinations [#call, nil] takes host, port and addresses before a connection is made, gives those that may be used, or raises
      # @param attended [Boolean] whether a thread of its own goes on with what was begun by {#fetch} while nobody waits for it
      # @param options [Hash] those named here that have a default in {Settings#initialize}
      # @raise [ArgumentError]
      def initialize(memory: Memory.default_path, cache: false, headers: {}, attended: false, instrumenter: HTTP.instrumenter, **options)
        @attended = attended
        @settings = Settings.new(cache: cache, headers: headers, instrumenter: instrumenter, **options)
        @memory = memory.is_a?(Memory) ? memory : Memory.new(memory)
        begin_anew
      end

      NONE = {}.freeze
      TERMS = %i[timeout retries raise_for_status].freeze
      private_constant :NONE, :TERMS

      # Gets resources.
      #
      # @param urls [Array<String, URI, Address>] one or several
      # @param options [Hash] see {#fetch}
      # @yieldparam outcome [Response, Failure] each as soon as it is there
      # @return [Response, Array<Response, Failure>, nil] of one URL its response; of several, or of an Array, the outcomes in their order; nil with a block
      # @raise [RequestFailed] of one URL, without a block
      # @raise [InvalidURL, ArgumentError]
      def get(*urls, **options, &block) = request_all("GET", urls, **options, &block)

      # The same without bodies.
      #
      # @param urls [Array<String, URI, Address>] one or several
      # @param options [Hash] see {#fetch}
      # @yieldparam outcome [Response, Failure] each as soon as it is there
      # @return [Response, Array<Response, Failure>, nil] see {#get}
      def head(*urls, **options, &block) = request_all("HEAD", urls, **options, &block)

      # @param url [String, URI, Address]
      # @param options [Hash] see {#fetch}
      # @return [Response]
      # @raise [RequestFailed, InvalidURL, ArgumentError]
      def post(url, **options) = request("POST", url, **options)

      # @param url [String, URI, Address]
      # @param options [Hash] see {#fetch}
      # @return [Response] see {#post}
      def put(url, **options) = request("PUT", url, **options)

      # @param url [String, URI, Address]
      # @param options [Hash] see {#fetch}
      # @return [Response] see {#post}
      def patch(url, **options) = request("PATCH", url, **options)

      # @param url [String, URI, Address]
      # @param options [Hash] see {#fetch}
      # @return [Response] see {#post}
      def delete(url, **options) = request("DELETE", url, **options)

      # @param method [String, Symbol] any but CONNECT
      # @param url [String, URI, Address]
      # @param options [Hash] see {#fetch}
      # @return [Response]
      # @raise [RequestFailed, InvalidURL, ArgumentError]
      def request(method, url, **options) = fetch(url, method: method, **options).value

      # Begins a request, and does not wait.
      #
      # @param url [String, URI, Address] name and password in it, as in http://NAME:PASSWORD@HOST/, are told to this origin alone (Basic, RFC 7617), unless
      #   the headers have Authorization
      # @param timeout [Numeric, nil] seconds for all of it, in place of the client's total; nil: as long as it takes
      # @param request [Hash] what else is said of it
      # @option request [Integer] :retries in place of the client's
      # @option request [Boolean] :raise_for_status in place of the client's
      # @option request [String, Symbol] :method GET
      # @option request [Hash] :headers
      # @option request [Hash, Array, nil] :params behind the query that the URL has: as :form, but for files
      # @option request [Object, nil] :json is the body, as JSON: what as_json knows (see {Codec::Format#dump}), and nil is none
      # @option request [Hash, Array, nil] :form is the body, as a browser's form: nested as Rack reads it, `{book: {title: "x"}, tags: [1, 2]}` is
      #   `book[title]=x&tags[]=1&tags[]=2`; an Array of pairs may have a name twice. With a {Part}, or something that is read, it is multipart/form-data
      #   (RFC 7578), else application/x-www-form-urlencoded (URL Standard, section 5)
      # @option request [String, #read, nil] :body something that is read is sent once only: with its length, where it says its size or the headers have
      #   Content-Length, else in chunks. A pipe or a socket (read_nonblock, to_io) is
      #   waited for, beside all else, for as long as its timeout allows; of anything else `read` is called, and all that is under way waits for it
      # @option request [Numeric, nil] :priority what is lower is asked for earlier; nil: by the kind of the resource
      # @option request [Boolean] :alone whether it wants a connection to itself, as an answer that is long in coming does
      # @return [Fetch]
      # @raise [InvalidURL, ArgumentError]
      def fetch(url, timeout: @settings.total, **request)
        begun(Fetch, url, timeout: timeout, **request)
      end

      # What is begun in the block, with {#fetch} and {#open}, is asked for together when the block ends: in as few packets as hold it.
      #
      # @yield where nothing is waited for
      # @return [Object] what the block returns
      def together(&block) = driver.together(&block)

      # Begins a request whose answer is taken piece by piece.
      #
      # @param url [String, URI, Address]
      # @param timeout [Numeric, nil] see {#fetch}
      # @param alone [Boolean] false is for what is taken quickly: what is asked for behind it has to wait for it
      # @param request [Hash] see {#fetch}
      # @yieldparam stream [Stream] which is closed after the block
      # @return [Stream, Object] without a block the stream, to be closed; else what the block returns
      # @raise [RequestFailed, InvalidURL, ArgumentError]
      def open(url, timeout: @settings.total, alone: true, **request)
        stream = begun(Stream, url, timeout: timeout, alone: alone, **request)
        return stream unless block_given?
        begin
          yield stream
        ensure
          stream.close
        end
      end

      # Begins a request whose answer is taken by another kind of stream.
      #
      # @param kind [Class] of {Stream}
      # @param url [String, URI, Address]
      # @param timeout [Numeric, nil] see {#fetch}
      # @param request [Hash] see {#fetch}
      # @return [Stream] of that kind
      # @raise [InvalidURL, ArgumentError]
      # @api private
      def stream(kind, url, timeout: @settings.total, **request) = begun(kind, url, timeout: timeout, **request)

      # Nobody wants these any more. Those that would hold up what is asked next for longer than a new connection takes are let go, see {CancellationPolicy}.
      # So are those of a server that says nothing. The others come.
      #
      # @param fetches [Array<Fetch>]
      # @return [void]
      # @api private
      def abandon(fetches) = driver.synchronize { @manager.abandon(fetches) }

      # Closes connections on which nothing is under way.
      #
      # @param origin [Origin, nil] of this one alone
      # @return [void]
      # @api private
      def rest(origin = nil)
        driver.synchronize { @manager.servers.to_a.each { |server| server.rest if origin.nil? || server.route.origin == origin } }
      end

      # @return [Integer] that stand, or are being opened
      # @api private
      def connections = driver.synchronize { @manager.servers.to_a.sum { |server| server.connections.size } }

      # Why an origin is pipelined, or why not, and what is known of the way to it.
      #
      # @param url [String, URI, Address] of the origin, or of anything there
      # @return [String] a sentence
      # @raise [InvalidURL]
      def explain(url)
        origin = Address.parse(url).origin
        driver.synchronize { @manager.servers[origin].explain }
      end

      # @return [Array<String>] the same of every origin that was asked
      def explanations = driver.synchronize { @manager.servers.to_a.map(&:explain) }

      # Ends what is under way, closes all connections and writes the memory. The client can be used on after it.
      #
      # @return [void]
      def close
        return begin_anew unless @driver.own?
        @driver.synchronize { @manager.close }
        @driver.close
        @memory.save
        begin_anew
      end

      # @return [String]
      def inspect = "#<#{self.class} #{@manager.servers.size} origins>"

      private

      # A child of this process leaves the connections to its parent.
      def driver
        begin_anew unless @driver.own?
        @driver
      end

      def begin_anew
        @driver = Driver.new(attended: @attended)
        @manager = Dispatcher.new(@settings, @driver, @memory, clock: Support::Clock::WALL)
      end

      def build(url, method: "GET", headers: NONE, params: nil, json: nil, form: nil, **more)
        url = Address.parse(url).with_query(Request::Content.query(params)) if params
        headers, more[:body] = Request::Content.of(headers, body: more[:body], json: json, form: form) unless json.nil? && form.nil?
        request = Request.new(method, url, headers: @settings.headers.empty? ? headers : merged(headers), **more)
        request.address.user_information ? identified(request) : request
      end

      # By name and password that stand in the URL, unless the caller says something else.
      def identified(request)
        return request if request["authorization"]
        request.redirected(request.address, headers: [*request.headers, ["authorization", Credentials.basic(request.address)]])
      end

      # What is said of a request stands in place of what is said of every one.
      def merged(headers)
        said = headers.to_a.map { |name, _| name.to_s.downcase }
        @settings.headers.reject { |field| said.include?(field.first) } + headers.to_a
      end

      def request_all(method, urls, **options, &block)
        terms, said = split(options)
        one = urls.size == 1 && !urls.first.is_a?(Array)
        return fetch_one(build(urls.first, method: method, **said), terms) if one && block.nil?
        asked = urls.flatten.map { |url| build(url, method: method, **said) }
        batch = driver.synchronize { submitted(asked, terms) }
        block ? batch.each(&block) : batch.outcomes
      ensure
        batch&.cancel # whoever was to wait is gone
      end

      # Who waits for it begins it.
      def fetch_one(asked, terms)
        fetch = driver.synchronize { submit(Fetch, asked, terms) }
        fetch.value
      ensure
        fetch.cancel unless fetch.nil? || fetch.done?
      end

      def begun(kind, url, **options)
        terms, said = split(options)
        asked = build(url, **said)
        driver.synchronize { submit(kind, asked, terms).tap { driver.nudge } }
      end

      # On what terms it is waited for, and what is said of the request.
      def split(options) = [@settings.terms(**options.slice(*TERMS)), options.except(*TERMS)]

      def submitted(asked, terms)
        batch = Batch.new(driver)
        asked.each { |request| batch << submit(Fetch, request, terms, batch.news) }
        batch
      rescue
        batch&.cancel
        raise
      end

      def submit(kind, request, terms, *news)
        fetch = kind.new(request.address.url, @manager, @driver, terms, *news)
        fetch.notice = Notification.new(@settings.instrumenter, request, @driver.now) if @settings.instrumenter
        @manager.submit(request, fetch)
        fetch
      end
    end
  end
end
