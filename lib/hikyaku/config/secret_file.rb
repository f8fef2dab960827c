# frozen_string_literal: true

require_relative "../error"

module Hikyaku
  class Config
    # A file that holds a secret. As for ssh and PostgreSQL, the permissions of the file alone decide: one that every user of
    # the machine can read or write is no secret. Its group may read it, as containers need.
    module SecretFile
      OTHERS = 0o006
      # What looks like a key that others may know: public PEM texts and certificates, key sets without secret members.
      PUBLIC = /\A\s*(?:-----BEGIN (?!.*PRIVATE)|\{(?!.*"(?:k|d)"\s*:))/m
      private_constant :OTHERS, :PUBLIC

      module_function

      def read(path, where: path)
        File.open(path, "rb") do |file|
          reason = exposure(file.stat)
          raise ConfigError, "#{where} #{reason}: run chmod o-rwx #{path}" if reason
          file.read.chomp
        end
      rescue SystemCallError => error
        raise ConfigError, "#{where} cannot be read: #{Config.reason(error)}"
      end

      def doubt(path)
        reason = exposure(File.stat(path)) or return
        "#{path} holds a secret, and #{reason}: run chmod o-rwx #{path}" unless File.binread(path).match?(PUBLIC)
      rescue SystemCallError, ArgumentError
        nil
      end

      def literal?(key) = !key.match?(%r{\A(?:file:|@|https?://)}i) && !key.b.match?(PUBLIC)

      # A pipe or a device has no permissions that matter.
      def exposure(stat)
        return unless stat.file? && stat.mode & OTHERS > 0
        "can be #{(stat.mode & 0o004 > 0) ? "read" : "written"} by every user of this machine (mode #{format("%04o", stat.mode & 0o7777)})"
      end
    end
  end
end
