# frozen_string_literal: true

require_relative "../../error"

module Hikyaku
  class Web
    class Authorization
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
