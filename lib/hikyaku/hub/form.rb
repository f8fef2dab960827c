# frozen_string_literal: true

require_relative "../error"
require_relative "event"
require_relative "form/blocks"
require_relative "form/member"
require_relative "form/message_pack"
require_relative "form/piece"
require_relative "form/shelf"

module Hikyaku
  # A stream was asked for in a form, or with a coding, that no hub has. The message says which there are.
  class UnknownForm < ArgumentError
    include Error
  end

  # An engine has streams of this form or coding not. The message says what to do.
  class FormNotOffered < StandardError
    include Error
  end

  class Hub
    # How streams are written that are not Server-Sent Events as they are: as MessagePack, compressed, or both. One object for all
    # subscribers of an engine with the same form and coding, as long as there are any.
    #
    #     record's bytes (SSE) ──► NAMES: as they are, or MessagePack ──► CODINGS: as they are, or blocks that stand alone
    #
    # What is made of an event is kept on shelves beside the ring, so that it is made once however many receive it.
    class Form
      # What events can be written as.
      NAMES = %i[events message_pack].freeze
      # How that can be coded.
      CODINGS = %i[identity gzip].freeze
      # Part of the history's size that a shelf may take. What has fallen from it is made again when somebody wants it.
      SHARE = 4
      private_constant :SHARE

      def self.plain?(name, coding)
        raise UnknownForm, "there is no form #{name.inspect}: use #{NAMES.join(" or ")}" unless NAMES.include?(name)
        raise UnknownForm, "streams have no coding #{coding.inspect}: use #{CODINGS.join(" or ")}" unless CODINGS.include?(coding)
        name == :events && coding == :identity
      end

      def self.refuse_naming(name)
        raise FormNotOffered, "only Server-Sent Events name the matchers that selected them: use the form :events" unless name == :events
      end

      attr_reader :name
      attr_reader :coding
      attr_reader :plain
      attr_accessor :streams
      attr_accessor :portion

      def initialize(name, coding, log:, plain: nil)
        @name = name
        @coding = coding
        @plain = plain
        @streams = 0
        @portion = nil
        @shelf = Shelf.new(log, log.capacity / SHARE)
        @blocks = Blocks.new if gzip?
        @heartbeat = piece_of(Event::HEARTBEAT)
        @said = @saying = nil
      end

      def gzip? = @coding == :gzip

      def piece(position, record)
        @shelf.fetch(position) { gzip? ? @blocks.piece(bytes(position, record)) : Piece.new(written(record.frame)) }
      end

      def bytes(position, record) = @plain ? @plain.piece(position, record).bytes : record.frame

      # An event and what stands before it for one alone, which is not compressed: the event's own bytes are as all have them.
      def named(names, piece)
        return piece if names.empty?
        Piece.new(Blocks.stored(names) + piece.bytes, Zlib.crc32_combine(Zlib.crc32(names), piece.crc, piece.size), names.bytesize + piece.size)
      end

      # What is said to one alone, or to some at the same time.
      def said(frame)
        return @heartbeat if frame == Event::HEARTBEAT
        return @saying if frame == @said
        @said = frame
        @saying = piece_of(frame)
      end

      # What is said last: then the stream ends in order.
      def ending(subscriber, frame)
        piece = piece_of(frame)
        return piece.bytes unless gzip?
        beginning = subscriber.begun? ? "" : Blocks::HEADER
        subscriber.receive_piece(piece, nil)
        "".b << beginning << piece.bytes << Blocks.trailer(subscriber)
      end

      def inspect = "#<#{self.class.name} #{@name} #{@coding}>"

      private

      def piece_of(frame)
        bytes = written(frame)
        gzip? ? @blocks.piece(bytes) : Piece.new(bytes)
      end

      def written(frame) = (@name == :message_pack) ? MessagePack.of(frame) : frame
    end
  end
end
