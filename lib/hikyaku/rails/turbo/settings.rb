# frozen_string_literal: true

require_relative "../../error"

module Hikyaku
  module Turbo
    # What `config.hikyaku` says of Turbo Streams. Checked when it is made, so that an application with a wrong value does not
    # start.
    class Settings
      NAMES = %i[turbo turbo_path turbo_expires_in turbo_token_expires_in turbo_authorize after_commit].freeze
      DEFAULTS = {turbo: false, turbo_path: "/hikyaku/streams", turbo_expires_in: 12 * 3600, turbo_token_expires_in: 600,
                  turbo_authorize: nil, after_commit: true}.freeze
      PATH = %r{\A(?:/[A-Za-z0-9._~-]+)+\z}
      TOKEN_SECONDS = (1..86_400)
      private_constant :DEFAULTS, :PATH, :TOKEN_SECONDS

      attr_reader :path
      attr_reader :expires_in
      attr_reader :token_expires_in
      attr_reader :authorize

      def initialize(given = {})
        # Nil is as good as nothing, but for what has a meaning of its own then.
        values = DEFAULTS.merge(given.select { |name, value| !value.nil? || name == :turbo_expires_in })
        @on = boolean(:turbo, values)
        @after_commit = boolean(:after_commit, values)
        @path = path_of(values[:turbo_path])
        @expires_in = values[:turbo_expires_in]&.then { |seconds| seconds(:turbo_expires_in, seconds, "a time, or nil for names that never expire") }
        @token_expires_in = seconds(:turbo_token_expires_in, values[:turbo_token_expires_in], "a time").to_i
        unless TOKEN_SECONDS.cover?(@token_expires_in)
          raise ConfigError, "config.hikyaku.turbo_token_expires_in is #{@token_expires_in} s: give #{TOKEN_SECONDS.min} s to #{TOKEN_SECONDS.max / 3600} hours"
        end
        @authorize = callable(values[:turbo_authorize])
        freeze
      end

      def on? = @on

      def after_commit? = @after_commit

      private

      def boolean(name, values)
        value = values[name]
        return value if [true, false].include?(value)
        raise ConfigError, "config.hikyaku.#{name} is #{value.inspect}: it is true or false"
      end

      def path_of(value)
        return value if value.is_a?(String) && PATH.match?(value)
        raise ConfigError, "config.hikyaku.turbo_path is #{value.inspect}: give a path such as #{DEFAULTS[:turbo_path]}"
      end

      # A duration of Active Support is no Numeric.
      def seconds(name, value, wanted)
        seconds = value.to_f if value.respond_to?(:to_f) && !value.is_a?(String)
        return seconds if seconds&.positive? && seconds.finite?
        raise ConfigError, "config.hikyaku.#{name} is #{value.inspect}: give #{wanted}, in seconds"
      end

      def callable(value)
        return value if value.nil? || value.respond_to?(:call)
        raise ConfigError, "config.hikyaku.turbo_authorize is #{value.class}: give something that can be called with a stream's name and a request"
      end
    end
  end
end
