# frozen_string_literal: true

require_relative "../../error"

module Hikyaku
  module Presence
    # What `config.hikyaku` says of presence. Checked when it is made.
    class Settings
      NAMES = %i[presence presence_path presence_grace].freeze
      DEFAULTS = {presence: false, presence_path: "/hikyaku/presence", presence_grace: 5}.freeze
      PATH = %r{\A(?:/[A-Za-z0-9._~-]+)+\z}
      GRACE = (0..3600)
      private_constant :DEFAULTS, :PATH, :GRACE

      attr_reader :path
      attr_reader :grace

      def initialize(given = {})
        values = DEFAULTS.merge(given)
        @on = values[:presence]
        wrong(:presence, @on, "true or false") unless [true, false].include?(@on)
        @path = values[:presence_path]
        wrong(:presence_path, @path, "a path such as #{DEFAULTS[:presence_path]}") unless @path.is_a?(String) && PATH.match?(@path)
        @grace = values[:presence_grace]
        # A duration of Active Support is no Numeric.
        @grace = @grace.to_i if !@grace.is_a?(Numeric) && @grace.respond_to?(:in_seconds)
        wrong(:presence_grace, @grace, "seconds, up to an hour") unless @grace.is_a?(Numeric) && GRACE.cover?(@grace)
        freeze
      end

      def on? = @on

      private

      def wrong(name, value, wanted) = raise(ConfigError, "config.hikyaku.#{name} is #{value.inspect}: give #{wanted}")
    end
  end
end
