# frozen_string_literal: true

require_relative "../error"
require_relative "../web/origins"

module Hikyaku
  class Doctor
    # What the checks are told beside the URL and the credentials. Frozen.
    class Options
      # Names and what they are unless given.
      DEFAULTS = {
        idle: 75, patience: 1, connections: 6, origin: nil, page: nil, topic: nil, behind: [], http_port: nil, connect: nil,
        ca_file: nil, insecure: false, only: [], skip: []
      }.freeze
      MOST_CONNECTIONS = 100
      MOST_SECONDS = 86_400
      private_constant :DEFAULTS, :MOST_CONNECTIONS, :MOST_SECONDS

      attr_reader(*DEFAULTS.keys)

      def initialize(checks, **given)
        unknown = given.keys - DEFAULTS.keys
        raise ConfigError, "doctor has no option #{unknown.first}; it has #{DEFAULTS.keys.join(", ")}" if unknown.any?
        DEFAULTS.merge(given.compact).each { |name, value| instance_variable_set(:"@#{name}", value) }
        check_numbers
        check_names(checks)
        @origin = origin_of(@origin) if @origin
        @connect = address_of(@connect) if @connect
        @behind = @behind.map { |name| front_of(name) }
        freeze
      end

      # Seconds after which what does not come is taken to be held until something else happens. More than the hub's
      # heartbeat, which may bring it along.
      def hold = 20 * patience

      def wants?(name) = (only.empty? || only.include?(name)) && !skip.include?(name)

      private

      def check_numbers
        {idle: 0, patience: 0.01, connections: 2}.each do |name, least|
          value = public_send(name)
          most = (name == :connections) ? MOST_CONNECTIONS : MOST_SECONDS
          raise ConfigError, "#{name}: expected a number from #{least} to #{most}" unless value.is_a?(Numeric) && value.between?(least, most)
        end
      end

      def check_names(checks)
        unknown = (only + skip - checks).first or return
        raise ConfigError, "there is no check #{unknown.inspect}; there are #{checks.join(", ")}"
      end

      def origin_of(text)
        raise ConfigError, "origin: expected one like https://app.example.com" unless text.match?(%r{\A[a-z][a-z0-9+.-]*://[^/]+/?\z}i)
        Web::Origins.of(text) or raise ConfigError, "origin: expected one like https://app.example.com"
      end

      def address_of(text)
        match = /\A(?<host>[^:\[\]\s]+|\[[0-9a-f:.]+\]):(?<port>\d{1,5})\z/i.match(text) or raise ConfigError, "connect: expected HOST:PORT"
        [match[:host].delete("[]"), match[:port].to_i]
      end

      def front_of(text)
        Front::NAMES.find { |name| name.casecmp?(text) } or
          raise ConfigError, "behind: expected one of #{Front::NAMES.join(", ")}"
      end
    end

    # What stands between the hub and its clients, as far as the header fields of an answer tell.
    class Front
      # Names as they are given and shown, and by what each is known. Thruster and others tell less of themselves than
      # what stands before them adds, so several may be found.
      SIGNS = {
        "Cloudflare" => ->(field) { field["server"].casecmp?("cloudflare") || !field["cf-ray"].empty? },
        "nginx" => ->(field) { field["server"].match?(/\A(?:nginx|openresty)\b/i) },
        "Caddy" => ->(field) { [field["server"], field["via"]].any? { |value| value.match?(/\bcaddy\b/i) } },
        "Apache" => ->(field) { field["server"].match?(/\AApache\b/i) },
        # The names of its cache's answers are written in small letters.
        "Thruster" => ->(field) { field["x-cache"].match?(/\A(?:hit|miss|bypass)\z/) },
        "kamal-proxy" => ->(_) { false }
      }.freeze
      FIELDS = %w[server via cf-ray x-cache].freeze
      private_constant :SIGNS, :FIELDS

      # Names that may be given.
      NAMES = SIGNS.keys.freeze

      attr_reader :names, :server

      def initialize(answer, given: [])
        fields = FIELDS.to_h { |name| [name, answer[name].to_s] }
        @server = fields["server"] unless fields["server"].empty?
        @names = (given + SIGNS.filter_map { |name, sign| name if sign.call(fields) }).uniq.freeze
        freeze
      end

      def include?(name) = @names.include?(name)

      def to_s
        return @server.to_s if @names.empty? || (@names.one? && @server&.downcase&.start_with?(@names.first.downcase))
        @names.join(" and ")
      end
    end
  end
end
