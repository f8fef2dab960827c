# frozen_string_literal: true

require_relative "../crc32c"

module Hikyaku
  module Log
    class Journal
      # The bytes of a journal: docs/journal.md, "A segment", "A record".
      module Format
        HEADER_BYTES = 64
        RECORD_BYTES = 24
        # A MARK, END or CLOSE with its body.
        MARK_BYTES = 40
        SEGMENT_LEAST = 64 * 1024
        SEGMENT_MOST = 1024 * 1024 * 1024
        SEGMENT_USUAL = 32 * 1024 * 1024
        IDENTITY_BYTES = 16

        MARK = 1
        ENDING = 2
        CLOSE = 3
        DROPPED = 4
        SKIP = 5
        # The log's own types: they take a position each.
        TYPES = (16..63)
        NAMES = {
          MARK => "MARK", ENDING => "END", CLOSE => "CLOSE", DROPPED => "DROPPED", SKIP => "SKIP", 16 => "UPDATE", 17 => "KEY", 32 => "ENQUEUE", 33 => "FREE",
          34 => "STATE", 35 => "QUEUE", 36 => "QUEUE_GONE", 37 => "PRODUCER", 38 => "PRODUCER_GONE", 39 => "BOOT"
        }.freeze

        MAGIC = "HKJ\r\n\x1A\n\x01".b.freeze
        SEGMENT_NAME = /\Ajournal-(\d{20})\.seg\z/
        SPARE_NAME = /\Aspare-\d{20}\.tmp\z/
        PADDING = Array.new(8) { |count| ("\0".b * count).freeze }.freeze
        INVERSE = 0xffffffff
        private_constant :MAGIC, :SEGMENT_NAME, :SPARE_NAME, :PADDING, :INVERSE

        # What stands at the beginning of a segment.
        Header = Struct.new(:identity, :number, :first, :salt, :begun, :size)

        module_function

        def segment_name(number) = format("journal-%020d.seg", number)

        def spare_name(number) = format("spare-%020d.tmp", number)

        def segment_number(name) = name[SEGMENT_NAME, 1]&.to_i

        def temporary?(name) = name == "checkpoint.tmp" || name.match?(SPARE_NAME)

        def type_name(type) = NAMES.fetch(type) { type.to_s }

        def space(length) = (RECORD_BYTES + length + 7) & ~7

        def header(header)
          bytes = [MAGIC, header.identity, header.number, header.first, header.salt, header.begun, header.size].pack("a8a16Q<Q<Q<Q<L<")
          bytes << [CRC32C.of(bytes)].pack("L<")
        end

        def parse_header(bytes)
          return unless bytes.bytesize >= HEADER_BYTES && bytes.start_with?(MAGIC)
          *fields, checksum = bytes.unpack("x8a16Q<Q<Q<Q<L<L<")
          header = Header.new(*fields)
          header if CRC32C.of(bytes.byteslice(0, HEADER_BYTES - 4)) == checksum && header.size.between?(SEGMENT_LEAST, SEGMENT_MOST)
        end

        def seed(salt) = CRC32C.of([salt].pack("Q<"))

        def record(seed, position, type, flags, body, bytes = "".b)
          length = body.bytesize
          rest = [position, type, flags, 0, length ^ INVERSE, body].pack("Q<CCS<L<a*")
          [length, CRC32C.update(seed, rest)].pack("L<L<", buffer: bytes) << rest << PADDING[-length & 7]
        end

        def mark(seed, position, type, synced, now) = record(seed, position, type, 0, [synced, now].pack("Q<Q<"))

        def skip(seed, position, skipped) = record(seed, position, SKIP, 0, skipped.byteslice(RECORD_BYTES..)).byteslice(0, RECORD_BYTES)

        def verify?(bytes, seed) = CRC32C.update(seed, bytes.byteslice(8..)) == bytes.unpack1("L<", offset: 4)
      end
    end
  end
end
