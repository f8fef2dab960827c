# frozen_string_literal: true

module Hikyaku
  class Doctor
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

      attr_reader :names
      attr_reader :server

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
