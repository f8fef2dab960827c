# frozen_string_literal: true

# Of test/support/codec_application/server.rb: objects that say themselves how they are to be written, and serialisers that stand before `render json:`.
module Asking
  # Says what it was asked, and spoils it.
  class Object
    def as_json(options)
      {class: options.class.name, keys: options.keys.map(&:to_s), at: Time.utc(2026)}.tap { options.clear }
    end
  end

  class Optional
    def as_json(options = nil) = {given: options.class.name}
  end

  class Both
    def as_json(options = nil) = {inner: [Optional.new], kept: options&.key?(:prefixes)}
  end

  class Text
    def initialize = @secret = 1

    def to_json(*) = %({"text":"its own"})
  end

  class LaterText < Both
    def to_json(*) = %({"text":"later"})
  end

  class List < Array
    def as_json(options) = [options.class.name]
  end

  OBJECTS = {
    "asks" => -> { Object.new }, "asks in arrays" => -> { [Object.new, [Object.new], Object.new] }, "asks in hashes" => -> { {a: {b: Object.new, c: Object.new}} },
    "optional" => -> { [Optional.new, {a: Optional.new}] }, "both" => -> { [Both.new] }, "list" => -> { {a: List.new} },
    "structure" => -> { [Struct.new(:a).new(Optional.new)] }, "set" => -> { Set[Optional.new] },
    "text" => -> { Text.new }, "texts" => -> { {a: [Text.new]} }, "later text" => -> { LaterText.new }, "delegated" => -> { SimpleDelegator.new(Text.new) },
    "single" => -> { {}.tap { |hash| hash.define_singleton_method(:to_json) { |*| "[1]" } } }, "symbol" => -> { :symbol }
  }.freeze
end

# Leaves all but the name out.
class NameOnly
  def initialize(object) = @object = object

  def as_json(*) = @object.is_a?(ActiveRecord::Base) ? {name: @object.name} : @object.map { |each| NameOnly.new(each).as_json }
end

# Each in its own way, as gems do it.
SERIALISING = {
  renderer: -> { define_method(:_render_with_renderer_json) { |object, options| super(NameOnly.new(object), options) } },
  typed: lambda do
    define_method(:_render_with_renderer_json) do |object, options|
      self.content_type = Mime[:json]
      NameOnly.new(object).to_json
    end
  end,
  renderers: -> { define_method(:_render_to_body_with_renderer) { |options| super(options.key?(:json) ? options.merge(json: NameOnly.new(options[:json])) : options) } },
  body: -> { define_method(:render_to_body) { |options = {}| super(options.key?(:json) ? options.merge(json: NameOnly.new(options[:json])) : options) } },
  normal: -> { define_method(:_normalize_options) { |options| super(options).tap { options[:json] = NameOnly.new(options[:json]) if options.key?(:json) } } },
  between: lambda do
    include(Module.new { define_method(:_normalize_options) { |options| super(options).tap { options[:json] = NameOnly.new(options[:json]) if options.key?(:json) } } })

    define_method(:_normalize_options, ActionController::Rendering.instance_method(:_normalize_options))
  end,
  replaced: lambda do
    around_action do |_, action|
      own = ActionController::Renderers.instance_method(:_render_with_renderer_json)
      ActionController::Renderers.add(:json) { |object, _| NameOnly.new(object).to_json }
      action.call
    ensure
      ActionController::Renderers.define_method(:_render_with_renderer_json, own)
    end
  end,
  encoder: lambda do
    encoder = Class.new(ActiveSupport.json_encoder) { define_method(:encode) { |object| super(NameOnly.new(object)) } }
    around_action do |_, action|
      before = ActiveSupport.json_encoder
      ActiveSupport.json_encoder = encoder
      action.call
    ensure
      ActiveSupport.json_encoder = before
    end
  end
}.freeze

SERIALISING.each do |name, way|
  controller = Class.new(ActionController::Base) do
    def chosen
      respond_to :json, :msgpack
      render json: Item.order(:id), status: :created, location: "/items"
    end

    def explicit
      respond_to do |format|
        format.json { render json: Item.first }
        format.msgpack { render msgpack: Item.first, status: :created }
      end
    end

    def bytes = render(msgpack: "\x01".b)

    def rows = hikyaku_represent(Item.order(:id).find_each)

    def strings = hikyaku_represent(["plain text", '{"a":1}'].each)
  end
  controller.class_exec(&way)
  Object.const_set(:"#{name.to_s.capitalize}Controller", controller)
end
