# frozen_string_literal: true

require_relative "image"

module Bench
  # A page of the benchmark: so many inline images of so many bytes each. Its address says which.
  Sheet = Struct.new(:size, :count) do
    # @param path [String] of a page's address
    # @return [Sheet]
    # @raise [ArgumentError]
    def self.at(path)
      size, count = path.match(%r{/s(\d+)x(\d+)\.html\z})&.captures || raise(ArgumentError, "#{path} is no page of the benchmark")
      new(Integer(size), Integer(count))
    end

    # @return [String]
    def path = "/s#{size}x#{count}.html"

    # @return [Array<String>] paths of its images
    def images = Array.new(count) { |number| "/s#{size}/#{number}.gif" }

    # @return [String]
    def html
      "<!doctype html><title>#{self}</title><link rel=icon href=data:,>\n" + images.map { |image| "<img src=#{image}>\n" }.join
    end

    # @return [Integer] bytes of the page and its images
    def bytes = html.bytesize + size * count

    # @param bodies [Array<String>] of the images, in their order
    # @return [Boolean] whether each is the right one
    def whole?(bodies)
      bodies.size == count && bodies.each_with_index.all? { |body, number| Image.own?(body, size, number) }
    end

    def to_s = "#{count} × #{size} B"
  end

  class Sheet
    # The paper's: NTT DoCoMo's page, a portal's, Yahoo's.
    SAMPLES = {"D" => new(1_200, 77), "G" => new(2_000, 24), "Y" => new(6_200, 5)}.freeze
    # What a client is made ready with: the origin is known afterwards.
    FIRST = new(2_000, 20)

    # @param name [String] "D", or the bytes of an image: "2000"
    # @param count [Integer] of images
    # @return [Sheet]
    def self.named(name, count) = SAMPLES[name] || new(Integer(name), count)
  end
end
