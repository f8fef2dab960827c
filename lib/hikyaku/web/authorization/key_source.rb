# frozen_string_literal: true

require "json"
require_relative "../../error"
require_relative "keys"
require_relative "remote_keys"

module Hikyaku
  class Web
    class Authorization
      # Turns the value of a key setting into trusted keys. The value is one of
      #
      # - `https://…`: the URL of a JWK Set ({RemoteKeys});
      # - `file:PATH` or `@PATH`: a file that holds one of the following ({FileKeys});
      # - PEM text: public keys, private keys, certificates;
      # - a JWK Set as JSON (or, from YAML, as a mapping);
      # - anything else: a secret, for HMAC.
      #
      # What looks like one of the first four is never taken for a secret: a public key must not become one. (A secret
      # that does look so can be given as a JWK Set with a key of type oct.) Nor is what stands in a file that is to hold a
      # JWK Set: an error page in its place would be a secret that everybody knows. Errors name the setting, never the value.
      class KeySource
        def initialize(fetch:, logger: nil, on_change: -> {}, weak: false)
          @fetch = fetch
          @weak = weak
          @logger = logger
          @on_change = on_change
        end

        def load(setting, value, algorithms, secrets: true)
          case value
          when nil then nil
          when Hash then StaticKeys.new(jwk_set(setting, JSON.generate(value), algorithms))
          when String then value.empty? ? refuse(setting, "it is empty") : text(setting, value.b, algorithms, secrets)
          else refuse(setting, "it must be text, not #{value.class}")
          end
        end

        private

        def text(setting, value, algorithms, secrets)
          case value
          when %r{\Ahttps?://}i then remote(setting, value, algorithms)
          when /\Afile:/i then file(setting, value.sub(%r{\Afile:(?://(?=/))?}i, ""), algorithms, secrets)
          when /\A@/ then file(setting, value.delete_prefix("@"), algorithms, secrets, secret: true)
          else StaticKeys.new(content(setting, value, algorithms, secrets))
          end
        end

        def content(setting, value, algorithms, secrets)
          return Pem.keys(value, configured: algorithms) if Pem.like?(value)
          return jwk_set(setting, value, algorithms) if value.lstrip.start_with?("{")
          refuse(setting, "it is neither a JWK Set nor PEM text") unless secrets
          [Key.of_secret(value, configured: algorithms, weak: @weak)].tap { warn_if_short(setting, value, algorithms) }
        rescue Key::Unusable => error
          refuse(setting, error.message)
        end

        def jwk_set(setting, json, algorithms)
          set = JwkSet.new(json, configured: algorithms, secrets: true, weak: @weak)
          refuse(setting, "the JWK Set has no usable key (#{set.skipped.first(3).join("; ")})") if set.keys.empty?
          @logger&.warn("#{setting}: the JWK Set has keys that are not used (#{set.skipped.first(3).join("; ")})") if set.skipped.any?
          set.keys
        rescue JwkSet::Malformed => error
          refuse(setting, "it looks like a JWK Set, but #{error.message}")
        end

        def remote(setting, url, algorithms)
          if algorithms&.all? { |name| Algorithms::KIND[name] == :secret }
            refuse(setting, "#{algorithms.join(", ")} cannot be used with a JWK Set at a URL, which holds public keys")
          end
          RemoteKeys.new(setting: setting, uri: KeyFetch.uri(url), configured: algorithms, fetch: @fetch,
            logger: @logger, on_change: @on_change)
        rescue KeyFetch::Failed => error
          refuse(setting, "the URL cannot be used: #{error.message}")
        end

        def file(setting, path, algorithms, secrets, secret: false)
          FileKeys.new(setting: setting, path: path, logger: @logger, on_change: @on_change) do
            content(setting, file_content(setting, path, secret), algorithms, secrets)
          end
        end

        # Editors and `echo` end a file with a line break that is not part of a secret.
        def file_content(setting, path, secret)
          content = read(path).chomp
          content.empty? ? refuse(setting, "the file is empty") : content
        rescue SystemCallError => error
          # After @ the path may be a secret that happens to begin so.
          refuse(setting, "the file#{" #{path}" unless secret} cannot be read (#{error.class})#{
            "; a secret that begins with @ is given as a JWK Set" if secret}")
        end

        def read(path)
          path.include?("\0") ? raise(Errno::ENOENT) : File.binread(path)
        end

        def warn_if_short(setting, secret, algorithms)
          lack = Algorithms.lack(secret, Algorithms.for_kind(:secret, algorithms))
          @logger&.warn("#{setting}: #{lack}; developer mode takes it all the same") if lack
        end

        def refuse(setting, reason) = raise(ConfigError, "#{setting}: #{reason}")
      end

      # Keys that the configuration holds: they never change while the hub runs.
      class StaticKeys
        def initialize(keys)
          @keys = keys.freeze
          freeze
        end

        def keys(_now) = @keys

        def keys_after_refresh(_now) = @keys

        def held = @keys

        def refreshable? = false

        def inspect = "#<#{self.class} #{@keys.size}>"
      end

      # The keys of a file, which is read again when it has changed. It is looked at once a second at most, when somebody asks
      # or `refresh_if_stale` is called, and at once by `reload`. A new content that cannot be used is logged, and the keys that
      # were read before stay in force. Thread-safe.
      class FileKeys
        CHECK_SECONDS = 1
        # A file that was written so lately may be written again without a change that its times show.
        SETTLED_SECONDS = 2
        # What differs when a file was replaced or written.
        Mark = Struct.new(:device, :inode, :size, :mtime, :ctime)
        private_constant :CHECK_SECONDS, :SETTLED_SECONDS, :Mark

        def initialize(setting:, path:, logger: nil, on_change: -> {}, &read)
          @setting = setting
          @path = path
          @logger = logger
          @on_change = on_change
          @read = read
          @mutex = Mutex.new
          @checked_at = -Float::INFINITY
          @mark = mark
          @keys = read.call.freeze
        end

        def keys(now)
          refresh_if_stale(now)
          @keys
        end
        alias_method :keys_after_refresh, :keys

        def held = @keys

        # Looks at the file if that was not done lately, and reads it if it has changed.
        def refresh_if_stale(now)
          # A clock that was set back must not stop this.
          return if (now - @checked_at).between?(0, CHECK_SECONDS)
          changed = @mutex.synchronize do
            next if (now - @checked_at).between?(0, CHECK_SECONDS)
            @checked_at = now
            seen = mark
            install(seen) unless seen == @mark && settled?(seen)
          end
          @on_change.call if changed
        end

        # Reads the file, whether it seems to have changed or not.
        def reload(_now = nil)
          changed = @mutex.synchronize { install(mark) }
          @on_change.call if changed
        end

        def refreshable? = true

        def inspect = "#<#{self.class} #{@path}, #{@keys.size} keys>"

        private

        def mark
          stat = File.stat(@path)
          Mark.new(stat.dev, stat.ino, stat.size, stat.mtime, stat.ctime)
        rescue SystemCallError, ArgumentError # NUL in the path
          nil
        end

        def settled?(mark) = mark.nil? || (Time.now - mark.mtime).abs > SETTLED_SECONDS

        def install(mark)
          known = mark == @mark
          @mark = mark
          keys = @read.call.freeze
          @failure = nil
          return false if keys == @keys
          @keys = keys
          @logger&.info { "#{@setting}: the file #{@path} was read again: #{keys.size} #{(keys.size == 1) ? "key" : "keys"}" }
          true
        rescue ConfigError => error
          @logger&.error("#{error.message}; the keys that were read before stay in force") unless known && error.message == @failure
          @failure = error.message
          false
        end
      end
    end
  end
end
