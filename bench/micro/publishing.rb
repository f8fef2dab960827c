# frozen_string_literal: true

# The hub's CPU for a publish over HTTP, without its server: a POST as Puma passes it, through the Rack application, and parts of that alone.
# The CPU is the thread's. Other programs do not disturb the number of allocated objects at all.

require "json"
require "stringio"
require "uri"
require_relative "../../lib/hikyaku/config"
require_relative "../../lib/hikyaku/server"
require_relative "../../lib/hikyaku/web"
require_relative "../../lib/hikyaku/web/token_maker"
require_relative "../../lib/hikyaku/hub/native_engine"
require_relative "../harness/measure"

rounds, seconds = Measure.options(rounds: 9, seconds: 0.15)

URL = "https://bench.example/.well-known/mercure"
TOPIC = "https://example.com/books/1"
FORM = URI.encode_www_form(topic: TOPIC, data: JSON.generate(title: "Dune", text: "x" * 160)).b.freeze
SECRET = "a secret of thirty-two bytes or more"

def config(engine)
  Hikyaku::Config.new(engine: engine, resource_identifier: URL, issuer: "https://bench.example", publisher_key: SECRET, subscriber_key: SECRET, anonymous: true)
end

# As Puma 8 makes it.
def env(token)
  {"rack.version" => [1, 6], "rack.errors" => $stderr, "rack.multithread" => true, "rack.multiprocess" => false, "rack.run_once" => false,
   "rack.url_scheme" => "http", "SCRIPT_NAME" => "", "QUERY_STRING" => "", "SERVER_SOFTWARE" => "puma", "GATEWAY_INTERFACE" => "CGI/1.2",
   "REQUEST_METHOD" => "POST", "REQUEST_PATH" => "/.well-known/mercure", "REQUEST_URI" => "/.well-known/mercure", "PATH_INFO" => "/.well-known/mercure",
   "SERVER_PROTOCOL" => "HTTP/1.1", "HTTP_HOST" => "127.0.0.1:3000", "SERVER_NAME" => "127.0.0.1", "SERVER_PORT" => "3000", "REMOTE_ADDR" => "127.0.0.1",
   "HTTP_AUTHORIZATION" => "Bearer #{token}", "CONTENT_TYPE" => "application/x-www-form-urlencoded", "CONTENT_LENGTH" => FORM.bytesize.to_s, "puma.socket" => nil}.freeze
end

def post(app, env)
  input = StringIO.new(FORM)
  lambda do
    input.rewind
    status, = app.call(env.merge("rack.input" => input))
    raise "answered #{status}" unless status == 200
  end
end

update = Hikyaku::Hub::Update.new(topics: TOPIC, data: JSON.generate(title: "Dune", text: "x" * 160))
work = {}
%w[ruby c].each do |engine|
  config = config(engine)
  token = Hikyaku::Web::TokenMaker.for(config, role: :publisher).call(publish: [{match: "*"}])
  web = Hikyaku::Web.new(config)
  work["POST, mounted, engine #{engine}"] = post(web, env(token))
  work["POST, standalone, engine #{engine}"] = post(Hikyaku::Server::DateHeader.new(Hikyaku::Server::HealthEndpoints.new(web)), env(token)) if engine == "ruby"
  work["Hub#publish, engine #{engine}"] = -> { web.hub.publish(update) }
end
cipher = Hikyaku::Log::PositionCipher.new
position = 0
work["event id in Ruby"] = -> { cipher.seal(position += 1) }
given = env("")
work["an environment"] = -> { given.merge("rack.input" => nil) }
work["nothing"] = -> {}

def objects(call)
  before = GC.stat(:total_allocated_objects)
  100.times { call.call }
  (GC.stat(:total_allocated_objects) - before) / 100.0
end

Measure.print(Measure.rounds(work, rounds, seconds, [:thread]), columns: ["objects"]) { |name, _| objects(work[name]) }
