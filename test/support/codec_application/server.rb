# frozen_string_literal: true

# The application of test/support/codec_application.rb: reads requests from its standard input, and writes responses to its output.
require "bigdecimal"
require "fileutils"
require "logger"
require "rails"
require "action_controller/railtie"
require "action_view/railtie"
require "active_record/railtie"
require "alba"
require "blueprinter"
require "ipaddr"
require "jbuilder"
require "ostruct"
require "pathname"
require "rack/lint"
require "rack/mock_request"
require "tmpdir"
require "hikyaku"

ANSWERS = $stdout.dup.binmode
$stdout.reopen($stderr)
SETTINGS = Marshal.load([ENV.fetch("CODEC_SETTINGS")].pack("H*"))
FOLDER = Dir.mktmpdir("hikyaku-codec")
at_exit { FileUtils.rm_rf(FOLDER) }

VIEWS = {
  "items/template.json.jbuilder" => "json.items @items, :name, :price\njson.count @items.size\n",
  "items/implicit.json.jbuilder" => "json.array! @items, partial: 'items/item', as: :item\n",
  "items/_item.json.jbuilder" => "json.name item.name\n",
  "items/own.msgpack.jbuilder" => "json.own 'MessagePack'\n",
  "items/own.json.jbuilder" => "json.own 'JSON'\n",
  "items/text.json.erb" => %({"text": <%== JSON.generate(@items.first.name) %>}\n),
  "items/page.html.erb" => "<p>page</p>\n",
  "layouts/framed.json.jbuilder" => "json.data JSON.parse(yield)\n"
}.freeze
VIEWS.each do |name, text|
  path = File.join(FOLDER, "app/views", name)
  FileUtils.mkdir_p(File.dirname(path))
  File.write(path, text)
end
FileUtils.mkdir_p("#{FOLDER}/config")
# A connection that is closed when it was idle for five minutes takes a database in memory with it.
File.write("#{FOLDER}/config/database.yml", "production: {adapter: sqlite3, database: ':memory:', idle_timeout: 0}\n")

class CodecRails < Rails::Application
  config.root = FOLDER
  config.load_defaults Rails::VERSION::STRING.to_f
  config.eager_load = false
  config.secret_key_base = "s" * 64
  config.hosts = []
  config.logger = Logger.new($stderr)
  config.log_level = :error
  config.action_controller.allow_forgery_protection = false
  if ENV["CODEC_COMPRESSED"]
    require "hikyaku/codec/rack/compression"
    config.middleware.insert_before 0, Hikyaku::Codec::Rack::Compression, min_bytes: 10
  end
  SETTINGS.each { |name, value| config.hikyaku[name] = value }
end
# As an application may have had it before.
Mime::Type.register "application/x-msgpack", :msgpack
CodecRails.initialize!

ActiveRecord::Schema.verbose = false
ActiveRecord::Schema.define do
  create_table(:items) do |table|
    table.string :name
    table.decimal :price, precision: 8, scale: 2
    table.datetime :updated_at
  end
end

class Item < ActiveRecord::Base
  def label = "#{name}!"
end

Item.create!([{name: "Hōryū", price: "12.50", updated_at: Time.utc(2026, 1, 2, 3, 4, 5)}, {name: "Dune", price: "3.10", updated_at: Time.utc(2026, 1, 3)}])

class ItemResource
  include Alba::Resource

  root_key :item, :items
  attributes :id, :name
end

class ItemBlueprint < Blueprinter::Base
  identifier :id
  field :name
end

require_relative "serialisers"
require_relative "../generated_objects"

# Compares `render json:` with Active Support's encoder.
module Comparing
  Row = Struct.new(:id, :at)
  Opaque = Class.new { def initialize = (@name, @at = "Ada", Time.at(1, in: "UTC")) }
  Special = Class.new(Hash) { def as_json(*) = {"special" => size} }
  Same = Class.new(Hash) { def as_json(*) = self }
  SpecialText = Class.new(String) { def as_json(*) = {"special" => size} }
  Giving = Struct.new(:given) { def as_json(*) = given }
  # Writes itself, in a way that no other encoder has.
  Writing = Module.new { def to_json(*) = %({ "written": "<itself>" }) }
  Written = Module.new do
    include Writing

    def as_json(*) = {"nested" => [true, {"id" => 1}]}
  end
  WrittenObject = Class.new do
    def to_json(*) = %({ "written": "<itself>" })

    def as_json(*) = {"nested" => true}
  end
  WrittenText = Class.new(String) { include Writing }
  WrittenList = Class.new(Array) { include Writing }
  WrittenHash = Class.new(Hash) { include Writing }
  TWICE = {}.compare_by_identity.tap { |hash| 2.times { |index| hash[+"name"] = index } }

  # As text, where it is one that Ruby can read.
  KINDS = {
    "nil" => nil, "true" => true, "integer" => -7, "wide integer" => 2**70, "float" => 0.1 + 0.2, "float below zero" => -0.0, "large float" => 1e22, "small float" => 5e-324, "NaN" => Float::NAN,
    "infinity" => -Float::INFINITY, "decimal" => BigDecimal("12.340"), "decimal NaN" => BigDecimal("NaN"), "rational" => 1/3r, "complex" => Complex(1, 2), "text" => "Hōryū \u{1F600}", "HTML" => "<a href='x'>&amp;</a>",
    "separators" => "a\u2028b\u2029c", "controls" => "\u0000\t\n\"\\\u007F/", "latin" => (+"Br\xFCcke").force_encoding("ISO-8859-1"), "ascii bytes" => "abc".b, "bytes" => "\xFF\x00".b, "broken" => +"\xFF",
    "safe" => "<b>".html_safe, "inquiry" => "a".inquiry, "symbol" => :"a<b", "time" => Time.at(0, 5_000_000, :nsec, in: "+02:00"), "UTC" => Time.utc(2026, 1, 2, 3, 4, 5, 678_000), "zoned" => Time.utc(2026).in_time_zone("Tokyo"),
    "date and time" => DateTime.new(2024, 1, 2, 3, 4, 5.678r), "date" => Date.new(2024, 2, 29), "duration" => 90.minutes, "range" => 1..3, "endless range" => (1..), "range of times" => Time.utc(2026)..Time.utc(2027),
    "pattern" => /a+<b>/, "set" => Set[1, :b, "<"], "enumerator" => [1, 2].each, "structure" => Row.new(1, Time.utc(2026)), "opaque" => Opaque.new, "hash" => {"a" => 1, :b => {c: [nil]}}, "keys" => {1 => 2, nil => 3, 1.5 => 4, Date.new(2026) => 5, "<&>" => 6, [1] => 7},
    "key twice" => {:a => 1, "a" => 2}, "bytes as key" => {"\xFF".b => 1}, "special hash" => Special[1, 2], "indifferent" => {a: [Time.utc(2026)]}.with_indifferent_access, "ordered" => ActiveSupport::OrderedHash[1, 2], "empty" => [{}, [], ""],
    "identity" => {a: 1}.compare_by_identity, "URI" => URI("http://a/b?c=d&e"), "path" => Pathname("/a"), "error" => ArgumentError.new("no"), "class" => String, "module" => Kernel, "address" => IPAddr.new("10.0.0.0/8"),
    "process status" => Process.clock_gettime(Process::CLOCK_REALTIME, :millisecond).zero?, "data" => OpenStruct.new(a: 1), "nested" => 40.times.inject(1) { |inner, _| [inner] }, "too deep" => 120.times.inject(1) { |inner, _| [inner] },
    "delegated" => SimpleDelegator.new([1, Time.utc(2026)]), "type" => Mime[:json], "special text" => SpecialText.new("a"), "same hash" => Same[:a, Opaque.new], "gives a special hash" => Giving.new(Special[1, 2]),
    "gives a special list" => Giving.new([Asking::List.new]), "gives special text" => Giving.new([SpecialText.new("a")]), "gives a key twice" => Giving.new({:a => 1, "a" => [2]}), "keys that are one" => {1 => 2, "1" => 3},
    "identity twice" => TWICE, "gives identity twice" => Giving.new([TWICE]), "written" => WrittenObject.new, "written by a module" => Class.new { include Written }.new, "written text" => WrittenText.new("a"),
    "written list" => WrittenList[1, {id: 1}], "written hash" => WrittenHash[1, 2], "gives written text" => Giving.new({in: WrittenText.new("a")}), "written text as key" => {WrittenText.new("a") => 1},
    "written by itself alone" => (+"a").tap { |text| text.extend(Writing) }, "object written by itself alone" => Object.new.extend(Written)
  }.freeze
  private_constant :Row, :Opaque, :Special, :Same, :SpecialText, :Giving, :Writing, :Written, :WrittenObject, :WrittenText, :WrittenList, :WrittenHash, :TWICE, :KINDS

  # The kinds of objects of which `render json:` writes other bytes than Active Support's encoder, and those that it leaves to that.
  def compared
    encoder = ActiveSupport.json_encoder
    left, failed, asked = [], [], 0
    encoder.prepend(Module.new { define_method(:encode) { |*values| asked += 1 and super(*values) } })
    differing = compared_objects.filter_map do |name, object|
      asked = 0
      quick = compared_text(object)
      left << name if asked.positive?
      failed << name if quick.any?(Class)
      ActiveSupport.json_encoder = Class.new(encoder)
      name unless quick == compared_text(object)
    ensure
      ActiveSupport.json_encoder = encoder
    end
    render plain: JSON.generate({"differing" => differing, "left" => left, "failed" => failed}), content_type: "application/json"
  end

  private

  def compared_objects
    generator = GeneratedObjects.new(Random.new(8))
    made = Array.new(60) { |index| ["generated #{index}", generator.next] }
    asking = Asking::OBJECTS.map { |name, object| [name, object.call] }
    records = [["record", Item.first], ["relation", Item.order(:id)], ["records in a hash", {items: Item.order(:id).to_a, first: Item.first}]]
    [*KINDS.to_a, *asking, *records, *made].flat_map { |name, object| [[name, object], ["#{name} in an array", [object]], ["#{name} in a hash", {"in" => {at: object}}]] }
  end

  def compared_text(object)
    # Without any: as in an API controller, unless a gem such as Jbuilder gives it views.
    [nil, {}, {only: %w[id at in name]}, {except: %i[at id]}, {status: 201}].map do |options|
      options ? render_to_string(json: object, **options) : _render_with_renderer_json(object, {})
    rescue SystemStackError, StandardError => error
      error.class
    end
  end
end

class ItemsController < ActionController::Base
  include Comparing

  before_action { @items = Item.order(:id) }

  OBJECTS = {
    "records" => -> { Item.order(:id) },
    "record" => -> { Item.first },
    "hash" => lambda do
      {"name" => :symbol, "at" => Time.utc(2026, 1, 2, 3, 4, 5, 678_000), "price" => BigDecimal("1.50"), 1 => nil, :for => 2.minutes, "on" => Date.new(2026, 1, 2),
       "zone" => Time.utc(2026).in_time_zone("Tokyo"), "range" => 1..3, "nan" => Float::NAN, "nested" => [{a: true}]}
    end,
    "alba" => -> { ItemResource.new(Item.order(:id)) },
    "alba text" => -> { ItemResource.new(Item.first).serialize },
    "blueprint" => -> { ItemBlueprint.render_as_hash(Item.order(:id)) },
    "blueprint text" => -> { ItemBlueprint.render(Item.first) },
    "nothing" => -> {},
    "packed" => -> { "\x01".b },
    "type" => -> { {type: Mime[:json]} },
    **Asking::OBJECTS
  }.freeze

  # Text, of which some would be JSON, some is none, and some is bytes.
  STRINGS = {"plain" => "plain text", "json" => '{"a":1}', "quote" => %(<"a" & b>\n), "empty" => "", "safe" => ActiveSupport::SafeBuffer.new("Hōryū"), "bytes" => "\xFF\x00".b, "words as bytes" => "ü".b, "ascii bytes" => "a".b, "broken" => "\xFF"}.freeze

  def refused_string
    hikyaku_represent(STRINGS.fetch(params[:name]))
  rescue Hikyaku::Codec::Unrepresentable => error
    render plain: error.message, status: 422
  end

  def string
    params[:row] ? hikyaku_represent([STRINGS.fetch(params[:name])].each) : hikyaku_represent(STRINGS.fetch(params[:name]), status: :accepted)
  end

  def object
    object = OBJECTS.fetch(params[:name]).call
    respond_to do |format|
      format.json { render json: object }
      format.msgpack { render msgpack: object }
      format.html { render plain: "page" }
    end
  end

  def chosen
    given = {only: [:name], methods: :label, status: :created, location: "/items/1"}
    respond_to do |format|
      format.json { render json: @items.first, **given }
      format.mpac { render mpac: @items.first, callback: "f", **given }
    end
  end

  def typed
    render msgpack: {a: 1}, content_type: "application/x-mpac"
  end

  def other_type
    respond_to :json, :msgpack
    render json: {a: 1}, content_type: params[:type]
  end

  def moments
    respond_to :json, :msgpack
    render json: [{at: Time.utc(2026, 1, 2, 3, 4, 5, 678_000), zone: Time.utc(2026).in_time_zone("Tokyo"), no: 1, in: {at: Time.utc(2026), no: 1}}], **OPTIONS.fetch(params[:options])
  end
  OPTIONS = {"none" => {}, "only" => {only: %i[at zone in]}, "except" => {except: :no}}.freeze

  def asking_rows
    hikyaku_represent [Asking::Object.new, {in: Asking::Object.new}].each, **OPTIONS.fetch(params[:options])
  end

  def endless
    twice = []
    2.times { twice << twice }
    render msgpack: twice, only: :name
  end

  def packed_or_page
    respond_to do |format|
      format.msgpack { render msgpack: 1 }
      format.html { render plain: "page" }
    end
  end

  def boom
    raise "a secret"
  end

  # What an API in development says of errors.
  def debugged
    application = ActionDispatch::DebugExceptions.new(->(_) { raise "a reason" }, nil, :api)
    env = Rack::MockRequest.env_for("/", :method => params[:method], "HTTP_ACCEPT" => params[:type], "action_dispatch.show_detailed_exceptions" => true, "action_dispatch.show_exceptions" => :all)
    status, headers, body = application.call(request.env.slice(*request.env.keys.grep(/\Aaction_dispatch\.(?!request)/)).merge(env))
    render json: {status: status, headers: headers.to_h, body: [body.join].pack("m")}
  end

  # What is logged of a body that cannot be read.
  def logged
    log = StringIO.new
    env = Rack::MockRequest.env_for("/", :method => "POST", :input => request.raw_post, "CONTENT_TYPE" => params[:type], "action_dispatch.logger" => Logger.new(log))
    begin
      ActionDispatch::Request.new(env).request_parameters
    rescue ActionDispatch::Http::Parameters::ParseError
      log.puts "refused"
    end
    render plain: log.string
  end

  def dated
    hikyaku_represent({a: 1}) if stale?(last_modified: Time.utc(2026))
  end

  def versioned
    hikyaku_represent({n: params[:n]}) if stale?(strong_etag: "version 1")
  end

  def only_json
    respond_to :json
    render :template
  end

  def offline
    rendered = [self.class.render(json: {a: 1}), self.class.render(template: "items/template", formats: [:json], assigns: {items: @items}), self.class.render(inline: "page")]
    render json: rendered
  end

  def types
    render json: Mime::SET.count { |type| type.symbol == :msgpack }
  end

  def made_up
    response.headers["Content-Type"] = "no such type"
    render body: "x"
  end

  def either
    respond_to :json, :msgpack
    render json: @items, only: :name
  end

  def packed_first
    respond_to :mpac, :json
    render json: @items, only: :name
  end

  def represented
    hikyaku_represent @items, except: %i[id updated_at]
  end

  def template
    respond_to :json, :msgpack
  end

  def framed
    respond_to :json, :msgpack
    render :template, layout: "framed"
  end

  def implicit
  end

  def own
    respond_to :json, :msgpack
  end

  def text
    respond_to :json, :msgpack
  end

  def page
    respond_to :html
  end

  def words
    render msgpack: "these are words"
  end

  def to_string
    respond_to :json, :msgpack
    render json: {text: render_to_string(json: {a: 1}), template: render_to_string(template: "items/own", formats: [:json])}
  end

  def fresh
    return unless stale?(@items.first)
    respond_to :json, :msgpack
    render json: @items.first
  end

  def private_one
    response.headers["Cache-Control"] = "no-store"
    hikyaku_represent({a: 1})
  end

  def echo
    render json: {params: params.to_unsafe_h.except("controller", "action", "format"), name: params[:name].class.name}
  end

  # Says nothing of what it was sent: JSON could not say all of it.
  def taken
    render plain: params.to_unsafe_h.inspect.bytesize.to_s
  end

  def rows
    started = 0
    counted = Enumerator.new(params[:count].to_i) do |yielder|
      raise "asked for twice" if (started += 1) > 1
      params[:count].to_i.times { |n| yielder << {id: n, name: "item #{n}", text: "x" * 180} }
    end
    hikyaku_represent counted, only: %i[id text]
  end

  def found
    hikyaku_represent Item.order(:id).find_each(batch_size: 1), only: :name
  end
end

class TasteController < ActionController::Base
  rescue_from(ActionController::UnknownFormat) { render plain: "no taste", status: 406 }

  def show
    respond_to(:json, :msgpack)
  end
end

class ApiController < ActionController::API
  def show
    hikyaku_represent({api: true})
  end
end

class StreamController < ActionController::Base
  include ActionController::Live

  def show
    respond_to :json, :msgpack
    format = Hikyaku::Codec[Mime::Type.lookup(response.media_type).symbol]
    format.each_piece((1..3).each) { |piece| response.stream.write(piece) }
  ensure
    response.stream.close
  end
end

CodecRails.routes.draw do
  SERIALISING.each_key { |name| %w[chosen explicit rows strings bytes].each { |action| get "/#{name}/#{action}", to: "#{name}##{action}" } }
  ItemsController.action_methods.each { |name| match "/#{name}(.:format)", to: "items##{name}", via: %i[get post] unless name == "echo" }
  post "/echo(.:format)", to: "items#echo"
  get "/taste", to: "taste#show"
  get "/api(.:format)", to: "api#show"
  get "/live", to: "stream#show"
end

APPLICATION = Rack::Lint.new(CodecRails)

# The largest memory since it was last asked, in bytes.
def peak
  File.read("/proc/self/status")[/VmHWM:\s+(\d+)/, 1].to_i * 1024
ensure
  File.write("/proc/self/clear_refs", "5")
end

$stdin.binmode
until $stdin.eof?
  request = Marshal.load($stdin)
  env = Rack::MockRequest.env_for(request[:path], :method => request[:method], :input => request[:body], "HTTP_HOST" => "localhost")
  env.delete("CONTENT_TYPE")
  env.update(request[:env])
  if request[:count]
    GC.start
    peak
    before = peak
  end
  status, headers, body = APPLICATION.call(env)
  text = +"".b
  size = 0
  body.each { |piece| request[:count] ? size += piece.bytesize : text << piece }
  body.close if body.respond_to?(:close)
  grown = peak - before if before
  Marshal.dump([status, headers.to_h, request[:count] ? size.to_s : text, grown], ANSWERS)
  ANSWERS.flush
end
