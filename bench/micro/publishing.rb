# frozen_string_literal: true

# What a publish over HTTP costs the hub, without its server: a POST as Puma has it, through the Rack application, and parts of
# that alone. Microseconds of the thread's CPU, which the others on a machine disturb little, and objects that are
# made, which they do not disturb at all. The median, least and greatest of several rounds, in which everything is measured in turn.

require "json"
require "optparse"
require "stringio"
require "uri"
require_relative "../../lib/hikyaku/config"
require_relative "../../lib/hikyaku/server"
require_relative "../../lib/hikyaku/web"
require_relative "../../lib/hikyaku/web/token_maker"
require_relative "../../lib/hikyaku/hub/native_engine"

rounds = 9
seconds = 0.15
OptionParser.new do |parser|
  parser.banner = "usage: bin/bench publishing [options]"
  parser.on("--rounds N", Integer, "how often everything is measured (#{rounds})") { |n| rounds = n }
  parser.on("--seconds S", Float, "for how long each time (#{seconds})") { |s| seconds = s }
end.parse!(ARGV)

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
  work["POST, standalone, engine #{engine}"] = post(Hikyaku::Server::Dated.new(Hikyaku::Server::Operations.new(web)), env(token)) if engine == "ruby"
  work["Hub#publish, engine #{engine}"] = -> { web.hub.publish(update) }
end
cipher = Hikyaku::Log::PositionCipher.new
position = 0
work["event id in Ruby"] = -> { cipher.seal(position += 1) }
given = env("")
work["an environment"] = -> { given.merge("rack.input" => nil) }
work["nothing"] = -> {}

def measure(seconds, call)
  times = 0
  started = cpu = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID)
  until cpu - started > seconds
    100.times { call.call }
    times += 100
    cpu = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID)
  end
  (cpu - started) / times * 1e6
end

def objects(call)
  before = GC.stat(:total_allocated_objects)
  100.times { call.call }
  (GC.stat(:total_allocated_objects) - before) / 100.0
end

work.each_value { |call| measure(0.05, call) }
results = Hash.new { |hash, name| hash[name] = [] }
rounds.times { work.each { |name, call| results[name] << measure(seconds, call) } }

puts "#{" " * 32}CPU, µs: median   least  greatest   objects"
results.each do |name, samples|
  samples.sort!
  puts format("%-32s %15.2f %7.2f %9.2f %9.1f", name, samples[samples.size / 2], samples.first, samples.last, objects(work[name]))
end
