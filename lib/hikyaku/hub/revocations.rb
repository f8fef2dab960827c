# frozen_string_literal: true

require_relative "storage"

module Hikyaku
  class Hub
    # Subjects whose older tokens are refused, and since when. Bounded: the oldest are dropped first. Tokens should live
    # shorter than it takes to revoke so many.
    #
    # With a path they are kept in a file, a line for each: seconds since 1970, and the subject in Base64. A line without its end was
    # never acknowledged.
    class Revocations
      LINE = %r{\A(\d+\.\d{6}) ([A-Za-z0-9+/]*=*)\n\z}
      private_constant :LINE

      def initialize(path: nil, limit: 100_000)
        @limit = limit
        @revoked = {}
        @path = path
        @lock = Mutex.new
        failing { open_file } if path
      end

      # A clock that was put back takes nothing back.
      def add(subject, at)
        at = [at, *@revoked.delete(subject)].max
        @revoked.shift while @revoked.size >= @limit
        @revoked[subject] = at
      end

      # Brings the revocation of a subject to the disk, where there is a file.
      def keep(subject)
        return unless @file
        failing do
          @lock.synchronize do
            @file.write(line(subject, @revoked.fetch(subject) { return }))
            @file.fsync
          end
        end
      end

      # A time in whole seconds may lie anywhere in its second: such a token is refused in the second of the revocation, too.
      # Hikyaku's own tokens say when they were issued in fractions of a second, so that a user can sign in again at once.
      def cover?(subject, issued_at)
        revoked_at = @revoked[subject] or return false
        issued_at.nil? || issued_at <= ((issued_at == issued_at.floor) ? revoked_at.floor : revoked_at)
      end

      # Leaves the file to the process that this one was forked from, or ends.
      def close
        @file&.close
        @file = nil
      end

      private

      # Written anew: without lines that later ones have replaced, and without a torn one.
      def open_file
        File.foreach(@path, mode: "rb") { |text| add(text[LINE, 2].unpack1("m").force_encoding(Encoding::UTF_8), text[LINE, 1].to_f) if text.match?(LINE) } if File.exist?(@path)
        File.open("#{@path}.tmp", File::WRONLY | File::CREAT | File::TRUNC | File::BINARY, 0o600) do |file|
          @revoked.each { |subject, at| file.write(line(subject, at)) }
          file.fsync
        end
        File.rename("#{@path}.tmp", @path)
        File.open(File.dirname(@path), &:fsync)
        @file = File.open(@path, File::WRONLY | File::APPEND | File::BINARY)
        @file.sync = true
      end

      # Rounded up, so that no token of the same moment passes.
      def line(subject, at) = format("%.6f %s\n", at.ceil(6), [subject].pack("m0"))

      def failing
        yield
      rescue SystemCallError, IOError => error
        raise StorageFailed, "revocations cannot be kept in #{@path}, and end with this process: #{error.message}"
      end
    end
  end
end
