# frozen_string_literal: true

require "fileutils"

module Bench
  # An image of the pages: a GIF of exactly so many bytes, which does not compress, and which says its number in a comment and by its
  # width, which a browser sees. The bytes are always the same.
  module Image
    MIN_SIZE = 100
    TWO_COLOURS = "\x80\x00\x00\x00\x00\x00\xFF\xFF\xFF".b.freeze # flags, background, aspect, black, white
    COMMENT = "\x21\xFE".b.freeze
    DOT = "\x00\x2C\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02\x44\x01\x00\x3B".b.freeze # end of the comment, a black pixel, the end
    LABEL_AT = 10 + TWO_COLOURS.bytesize + COMMENT.bytesize + 1
    MAX_BLOCK = 256 # bytes of a part of a comment, with that of its length

    class << self
      def bytes(size, number)
        raise ArgumentError, "an image has at least #{MIN_SIZE} bytes, not #{size}" if size < MIN_SIZE
        head = "GIF89a#{[width(number), 1].pack("v2")}".b << TWO_COLOURS << COMMENT
        head << comment(size - head.bytesize - DOT.bytesize, size, number) << DOT
      end

      # In pixels.
      def width(number) = number + 1

      # Whether a received body is this image.
      def own?(body, size, number)
        label = label(size, number)
        body.bytesize == size && body.byteslice(LABEL_AT, label.bytesize).b == label
      end

      private

      def label(size, number) = "image #{number} of #{size} bytes;".b

      # In parts, of which none is empty: an empty part ends the comment.
      def comment(left, size, number)
        random = Random.new(size * 1_000 + number)
        text = label(size, number)
        parts = "".b
        while left > 0
          block = [left, MAX_BLOCK].min
          block -= 1 if left - block == 1
          parts << (block - 1) << (text + random.bytes(block)).byteslice(0, block - 1)
          text = ""
          left -= block
        end
        parts
      end
    end
  end

  # A page: so many images of so many bytes each. Its address says which.
  Sheet = Struct.new(:size, :count) do
    # @raise [ArgumentError] the path is none of a page
    def self.at(path)
      size, count = path.match(%r{/s(\d+)x(\d+)\.html\z})&.captures || raise(ArgumentError, "#{path} is no page of the benchmark")
      new(Integer(size), Integer(count))
    end

    def path = "/s#{size}x#{count}.html"

    def images = Array.new(count) { |number| "/s#{size}/#{number}.gif" }

    def html = "<!doctype html><title>#{self}</title><link rel=icon href=data:,>\n" + images.map { |image| "<img src=#{image}>\n" }.join

    # Of the page and its images.
    def bytes = html.bytesize + size * count

    # The bodies by path.
    def files = images.each_with_index.to_h { |path, number| [path, Image.bytes(size, number)] }.merge(path => html)

    # Whether the bodies are its images, in their order.
    def whole?(bodies) = bodies.size == count && bodies.each_with_index.all? { |body, number| Image.own?(body, size, number) }

    def to_s = "#{count} × #{size} B"
  end

  class Sheet
    # The paper's pages: of NTT DoCoMo, of a portal, of Yahoo.
    SAMPLES = {"D" => new(1_200, 77), "G" => new(2_000, 24), "Y" => new(6_200, 5)}.freeze
    # Visited before, where the origin is to be known.
    FIRST = new(2_000, 20)
    FOLDER = File.expand_path("../../tmp/bench/pipelining/1", __dir__) # another number when the bytes change
    LOCK = Mutex.new
    private_constant :LOCK

    # @param name [String] "D", or the bytes of an image: "2000"
    def self.named(name, count) = SAMPLES[name] || new(Integer(name), count)

    # Writes the files of the pages, once, and returns their folder.
    def self.write(*sheets)
      LOCK.synchronize do
        sheets.reject { |sheet| File.exist?(File.join(FOLDER, sheet.path)) }.flat_map { |sheet| sheet.files.to_a }.each do |name, body|
          path = File.join(FOLDER, name)
          FileUtils.mkdir_p(File.dirname(path))
          partial = "#{path}.#{Process.pid}" # another process may do the same
          File.binwrite(partial, body)
          File.rename(partial, path)
        end
      end
      FOLDER
    end
  end
end
