# frozen_string_literal: true

require "json"
require "msgpack"
require "open3"
require "rbconfig"
require "tempfile"

# A Rails application whose controllers answer JSON and MessagePack, in a process of its own, with Rack::Lint round it: it is asked over a pipe.
class CodecApplication
  SCRIPT = File.expand_path("codec_application/server.rb", __dir__)
  ROOT = File.expand_path("../..", __dir__)

  Answer = Struct.new(:status, :headers, :body, :peak) do
    # @return [String, nil] a header field
    def [](name) = headers[name]

    # @return [Object] what the body says
    def value = (self["content-type"].start_with?("application/vnd.msgpack") ? MessagePack.unpack(body) : JSON.parse(body))
  end

  # @param settings [Hash] see {#initialize}
  # @return [CodecApplication] one for all tests that want the same, until they are over: to start one takes seconds
  def self.shared(**settings)
    @shared ||= {}
    @shared[settings] ||= new(**settings).tap { |application| Minitest.after_run { application.stop } }
  end

  # @param compressed [Boolean] whether Hikyaku::Codec::Rack::Compression stands in front
  # @param settings [Hash] of `config.hikyaku`
  def initialize(compressed: false, **settings)
    @errors = Tempfile.new("hikyaku-codec")
    env = {"RAILS_ENV" => "production", "CODEC_SETTINGS" => Marshal.dump(settings).unpack1("H*"), "CODEC_COMPRESSED" => (compressed ? "1" : nil)}
    @pipe = IO.popen([env, RbConfig.ruby, "-I#{ROOT}/lib", SCRIPT], "r+b", err: @errors.path)
  end

  # @param path [String]
  # @param accept [String, nil] the field Accept
  # @param options [Hash] `method`, `body`, `type`; or fields of the request
  # @return [Answer]
  def get(path, accept = nil, method: "GET", body: nil, type: nil, count: false, **fields)
    env = fields.to_h { |name, value| ["HTTP_#{name.to_s.upcase}", value] }
    env["HTTP_ACCEPT"] = accept if accept
    env["CONTENT_TYPE"] = type if type
    Marshal.dump({path: path, method: method, body: body, env: env, count: count}, @pipe)
    Answer.new(*Marshal.load(@pipe))
  rescue EOFError, SystemCallError
    raise "the application ended: #{log}"
  end

  def log = File.read(@errors.path).scrub

  def stop = @pipe.close
end
