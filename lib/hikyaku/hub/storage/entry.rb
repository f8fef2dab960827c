# frozen_string_literal: true

module Hikyaku
  class Hub
    class Storage
      # An update in the journal: what was published, not the event that it became. At the same position, with the same key, it becomes
      # the same event again.
      #
      # docs/journal.md, section "What the hub keeps".
      Entry = Struct.new(:position, :published_at, :topics, :data, :private, :id, :type, :retry_after, keyword_init: true) do
        def self.read(record)
          body = record.body
          position, published_at, retry_after, topics, id, type, _, data = body.unpack(self::HEAD)
          at = self::HEAD_BYTES
          topics = Array.new(topics) do
            length = body.unpack1("L<", offset: at)
            at += 4 + length
            text(body, at - length, length)
          end
          new(position: position, published_at: published_at, topics: topics, private: record.flags & self::PRIVATE != 0,
            retry_after: (retry_after unless retry_after == self::NO_RETRY),
            id: (text(body, at, id) unless id.zero?), type: (text(body, at + id, type) unless type.zero?), data: text(body, at + id + type, data))
        end

        def self.text(body, at, length) = body.byteslice(at, length).force_encoding(Encoding::UTF_8)
        private_class_method :text

        def flags = private ? self.class::PRIVATE : 0

        def to_bytes
          body = [position, published_at, retry_after || self.class::NO_RETRY, topics.size, id.to_s.bytesize, type.to_s.bytesize, 0, data.bytesize, 0].pack(self.class::HEAD)
          topics.each { |topic| body << [topic.bytesize].pack("L<") << topic.b }
          body << id.to_s.b << type.to_s.b << data.b
        end
      end

      Entry::HEAD = "Q<3S<4L<2"
      Entry::HEAD_BYTES = 40
      Entry::PRIVATE = 1
      Entry::NO_RETRY = 0xffff_ffff_ffff_ffff
    end
  end
end
