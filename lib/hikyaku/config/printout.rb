# frozen_string_literal: true

require_relative "issuer"
require_relative "settings"

module Hikyaku
  class Config
    # The settings as a YAML file that can be read again, with the origin of each as a comment. Secrets are hidden; a key
    # that is kept in a file of its own is shown as `file:PATH`, so that such a configuration is complete.
    class Printout
      # Written without quotes; everything else is safer in them.
      PLAIN = /\A(?:[a-z][a-z]*|\d+[KMG]?|\d+\.\d+)\z/
      RESERVED = %w[yes no on off true false null y n].freeze
      private_constant :PLAIN, :RESERVED

      def initialize(config)
        @config = config
      end

      def to_s
        Settings::ALL.group_by(&:group).map { |group, settings| "# #{group}\n#{settings.map { |one| entry(one) }.join}" }.join("\n")
      end

      private

      def entry(setting)
        value = @config.public_send(setting.name)
        comment = "  # #{@config.origin(setting.name)}\n"
        if setting.name == :issuers then issuers(setting, value, comment)
        elsif value.nil? then "# #{setting.name}: #{setting.default_text}#{comment}"
        # Nothing to fill in: developer mode brings it along.
        elsif setting.secret? && @config.development_secret? then "# #{setting.name}: the secret of developer mode#{comment}"
        elsif setting.list? then list(setting, value, comment)
        else "#{setting.name}: #{scalar(setting, value)}#{comment}"
        end
      end

      def list(setting, values, comment)
        return "#{setting.name}: []#{comment}" if values.empty?
        "#{setting.name}:#{comment}" + values.map { |value| "  - #{quote(setting.type.write(value))}\n" }.join
      end

      def issuers(setting, issuers, comment)
        return "#{setting.name}: []#{comment}" if issuers.empty?
        "#{setting.name}:#{comment}" + issuers.map { |issuer|
          issuer.to_h.map.with_index do |(name, value), i|
            "  #{(i == 0) ? "- " : "  "}#{name}: #{quote(Issuer::SECRETS.include?(name) ? Issuer.show_key(value) : value)}\n"
          end.join
        }.join
      end

      def scalar(setting, value)
        return value.to_s if setting.switch?
        quote(setting.secret? ? Issuer.show_key(value) : setting.type.write(value))
      end

      def quote(text)
        return text if text.match?(PLAIN) && !RESERVED.include?(text)
        "\"#{text.gsub(/["\\]/) { |character| "\\#{character}" }}\""
      end
    end
  end
end
