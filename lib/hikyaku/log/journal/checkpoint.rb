# frozen_string_literal: true

require_relative "../crc32c"
require_relative "spares"

module Hikyaku
  module Log
    class Journal
      # How far the journal was known to be on the disk: docs/journal.md, "Writing".
      Checkpoint = Struct.new(:identity, :synced, :newest, :first, :written_at, :dropped, keyword_init: true) do
        def self.parse(bytes)
          return unless bytes.bytesize >= 64 && bytes.start_with?(self::MAGIC)
          identity, synced, newest, first, written_at, count = bytes.unpack("x8a16Q<Q<Q<Q<L<")
          return unless bytes.bytesize == 64 + 8 * count && CRC32C.of(bytes.byteslice(0...-4)) == bytes.unpack1("L<", offset: bytes.bytesize - 4)
          new(identity: identity, synced: synced, newest: newest, first: first, written_at: written_at, dropped: bytes.unpack("x60Q<#{count}"))
        end

        def to_bytes
          bytes = [self.class::MAGIC, identity, synced, newest, first, written_at, dropped.size, *dropped].pack("a8a16Q<Q<Q<Q<L<Q<*")
          bytes << [CRC32C.of(bytes)].pack("L<")
        end

        # Writes it in place of the one before.
        def replace(files)
          files.unlink(self.class::TEMPORARY) if files.list.include?(self.class::TEMPORARY)
          file = files.create(self.class::TEMPORARY)
          begin
            files.write_all(file, to_bytes, 0)
            files.sync(file)
          ensure
            files.close(file)
          end
          files.rename(self.class::TEMPORARY, self.class::NAME)
          files.sync_folder
          true
        rescue *Spares::SHORTAGES
          false
        end
      end
      Checkpoint::NAME = "checkpoint"
      Checkpoint::TEMPORARY = "checkpoint.tmp"
      Checkpoint::MAGIC = "HKC\r\n\x1A\n\x01".b.freeze
    end
  end
end
