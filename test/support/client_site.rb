# frozen_string_literal: true

require "erb"
require "json"
require "rack"
require "time"
require "uri"
require_relative "access_tokens"
require_relative "hub_server"

# A site with pages that follow streams by hikyaku.js, a token endpoint for them, and a hub: all of one origin, over HTTP/1.1, as it is on a
# developer's machine. Its policy forbids whatever is inline.
#
#     site = ClientSite.new
#     page.visit(site.page("/room", cursor: site.newest))
#     site.publish("/room", "hello")
class ClientSite
  CLIENT = File.expand_path("../../app/assets/javascripts/hikyaku.js", __dir__)
  MODULES = File.expand_path("../../app/javascript/hikyaku", __dir__)
  SCRIPT = File.expand_path("client_page.js", __dir__)
  PRESENCE = File.expand_path("../../app/assets/javascripts/hikyaku-presence.js", __dir__)
  TURBO = File.join(Gem::Specification.find_by_name("turbo-rails").gem_dir, "app/assets/javascripts/turbo.js")
  TOPIC = "/streams/"
  POLICY = "default-src 'none'; script-src 'self'; worker-src 'self'; connect-src 'self' http://127.0.0.1:*; base-uri 'none'; form-action 'none'"
  private_constant :CLIENT, :MODULES, :SCRIPT, :PRESENCE, :TURBO, :TOPIC, :POLICY

  # @return [Hash{String => String}] names of streams, and why they are refused
  attr_reader :refused
  # @return [Integer] how long tokens live
  attr_accessor :token_seconds
  # @return [Integer] seconds by which the hub lets them live longer than the token endpoint says, for a browser that is late on a slow machine
  attr_accessor :token_grace
  # @return [String] whose they are
  attr_accessor :subject
  # @return [String, nil] the hub of the tokens, where it isn't the site's own
  attr_accessor :hub_url
  # @return [String] the header of pages
  attr_accessor :policy
  # @return [Boolean] whether pages come with names that have expired, as out of a cache
  attr_accessor :stale
  # @return [Numeric, nil] seconds after which /silent.js is the client; nil for never
  attr_accessor :late

  # @param settings [Hash] see HubServer
  def initialize(**settings)
    @refused = {}
    @token_seconds = 600
    @token_grace = 0
    @subject = "somebody"
    @policy = POLICY
    @lock = Mutex.new
    @token_requests = []
    @pages = []
    @items = []
    @age = 0
    @useless_loads = 0
    @server = HubServer.new(wrap: ->(web) { site(web) }, **settings)
  end

  def stop = @server.stop

  def origin = "http://127.0.0.1:#{@server.port}"

  def hub = @server.hub

  # @return [Integer] streams that the hub has now
  def streams = hub.stats[:subscribers]

  # @return [Array<Array<String>>] the names of each request to the token endpoint
  def token_requests = @lock.synchronize { @token_requests.dup }

  # @return [Array<String>] of each page that was loaded, the path and the query
  def pages = @lock.synchronize { @pages.dup }

  # @return [Integer] how often /silent.js and /dead.js were loaded
  def useless_loads = @lock.synchronize { @useless_loads }

  # All names that pages have now expire.
  #
  # @return [void]
  def expire = @lock.synchronize { @age += 1 }

  # @return [String] the newest event, at which a page is rendered
  def newest = hub.cursor(Hikyaku::Hub::Grant.new)

  # @return [String] the id of the event
  def publish(stream, data) = hub.publish(Hikyaku::Hub::Update.new(topics: [topic(stream)], data: data, type: topic(stream), private: true))

  # Stores an item, which pages with Turbo are rendered with from now on, and tells those that are open.
  def add(stream, item)
    @lock.synchronize do
      @items << item
      publish(stream, %(<turbo-stream action="append" target="list"><template><li>#{item}</li></template></turbo-stream>))
    end
  end

  def topic(stream) = "#{TOPIC}#{stream}"

  # @param streams [Array<String>]
  # @param cursor [String, nil] `newest` when the page is rendered unless given
  # @param more [Hash] turbo: "1" for a page with Turbo, whose list has what was published up to the cursor; client: where hikyaku.js is, or
  #   "/modules/index.js" for what it is joined from; presence: a name, for who is on pages with the same; worker: the address that the page names for the shared worker
  # @param without [Array<String>] what the browser is not to have: "SharedWorker", "locks"
  # @return [String] the URL of a page that follows streams
  def page(*streams, cursor: nil, without: [], path: "/page", **more)
    "#{origin}#{path}?#{URI.encode_www_form(streams.map { |name| ["stream", name] } + without.map { |name| ["without", name] } + {cursor: cursor, **more}.compact.to_a)}"
  end

  private

  def site(web)
    lambda do |env|
      next web.call(env) if web.serves?(env["PATH_INFO"])
      request = Rack::Request.new(env)
      case request.path_info
      when "/hikyaku.js" then file(CLIENT)
      when %r{\A/modules/([a-z-]+\.js)\z} then file(File.join(MODULES, $1))
      when "/page.js" then file(SCRIPT)
      when "/hikyaku-presence.js" then file(PRESENCE, File.read(PRESENCE).sub('from "hikyaku"', 'from "/hikyaku.js"'))
      when "/hikyaku/presence" then [200, {"content-type" => "application/json"}, [JSON.generate(here: JSON.parse(request.body.read).fetch("names").to_h { |name| [name, []] })]]
      when "/silent.js", "/dead.js" then useless(request.path_info)
      when "/turbo.js" then file(TURBO)
      when "/hikyaku/streams" then token_endpoint(request)
      when "/favicon.ico" then [204, {}, []]
      else html(request)
      end
    end
  end

  # @return [Array] a worker that says nothing, or dies, as a bundle with an application in it does; or with `late` the client itself
  def useless(path)
    @lock.synchronize { @useless_loads += 1 }
    sleep late if late
    code = late ? File.read(CLIENT) : {"/silent.js" => "", "/dead.js" => "document.title"}.fetch(path)
    [200, {"content-type" => "text/javascript", "cache-control" => "no-store"}, [code]]
  end

  def file(path, code = File.read(path)) = [200, {"content-type" => "text/javascript", "cache-control" => "max-age=60"}, [code]]

  def html(request)
    query = Rack::Utils.parse_query(request.query_string)
    cursor, list, age = @lock.synchronize do
      @pages << request.fullpath
      [query["cursor"] || newest, (@items.dup if query["turbo"]), stale ? 0 : @age]
    end
    sleep query["late"].to_f if query["late"]
    elements = Array(query["stream"]).map do |name|
      %(<hikyaku-stream-source signed-stream-name="signed:#{Rack::Utils.escape_html(name)}:#{age}.#{rand(1_000_000)}" cursor="#{cursor}"></hikyaku-stream-source>)
    end
    elements << %(<hikyaku-presence signed-stream-name="signed:presence #{query["presence"]}:#{age}.1"></hikyaku-presence>) if query["presence"]
    body = <<~HTML
      <!doctype html><html data-client="#{query.fetch("client", "/hikyaku.js")}" data-without="#{Array(query["without"]).join(" ")}"><head><meta charset="utf-8"><title>page</title>
      #{%(<meta name="hikyaku-worker" content="#{query["worker"]}">) if query["worker"]}
      #{%(<meta name="turbo-refresh-method" content="#{query["refresh"]}">) if query["refresh"]}
      #{%(<meta name="turbo-visit-control" content="reload">) if query["reload"]}
      #{%(<base href="/elsewhere/">) if query["base"]}
      #{%(<script type="module" src="/turbo.js"></script>) if query["turbo"]}
      #{%(<script type="module" src="/hikyaku-presence.js"></script>) if query["presence"]}
      <script type="module" src="/page.js"></script></head><body>#{elements.join}<ul id="list">#{list&.map { |item| "<li>#{item}</li>" }&.join}</ul><a href="/other">other</a></body></html>
    HTML
    [200, {"content-type" => "text/html; charset=utf-8", "content-security-policy" => policy, "cache-control" => "no-cache"}, [body]]
  end

  def token_endpoint(request)
    names = JSON.parse(request.body.read).fetch("names")
    age = @lock.synchronize { (@token_requests << names) && @age }
    refused = names.to_h { |name| [name, reason(name, age)] }.compact
    granted = names - refused.keys
    topics = granted.to_h { |name| [name, topic(name.split(":")[1])] }
    patterns = topics.select { |name, _| name.start_with?("signed:presence ") }.transform_values { |topic| "#{hub.hub_path}/subscriptions/exact/#{ERB::Util.url_encode(topic)}/:subscriber" }
    now = Time.now
    grants = topics.values.uniq + patterns.values.map { |pattern| {"match" => pattern, "match_type" => "urlpattern"} }
    answer = {hub: hub_url || hub.hub_path, token: token(grants, now), expires_at: now.to_i + token_seconds, topics: topics, refused: refused, patterns: patterns}
    [200, {"content-type" => "application/json", "cache-control" => "no-store", "date" => now.httpdate}, [JSON.generate(answer)]]
  end

  # @return [String, nil] why a name is refused
  def reason(name, age)
    _, stream, made = name.split(":")
    @refused[stream] || ("expired" if made.to_i < age)
  end

  def token(topics, now)
    AccessTokens.token(:subscriber, *topics, sub: subject, iat: now.to_i, exp: now.to_i + token_seconds + token_grace) unless topics.empty?
  end
end
