# frozen_string_literal: true

module Hikyaku
  module HTTP
    # One part of a form that is sent as multipart/form-data, where a field needs more than its value: another file name, a content type. RFC 7578.
    #
    #     client.post(url, form: {avatar: Hikyaku::HTTP::Part.new(bytes, filename: "ada.png", content_type: "image/png")})
    class Part
      CONTROL = /[\x00-\x08\x0A-\x1F\x7F]/n
      UNKNOWN = "application/octet-stream"
      UNNAMED = "file"
      private_constant :CONTROL, :UNKNOWN, :UNNAMED

      # @param file [#read] with the name and the type that it says itself: `original_filename` and `content_type`, as uploads in Rails do, or `path`
      # @return [Part]
      # @api private
      def self.of(file)
        name = file.original_filename if file.respond_to?(:original_filename)
        path = file.path if name.nil? && file.respond_to?(:path)
        name ||= ::File.basename(path) if path.is_a?(String)
        new(file, filename: name || UNNAMED, content_type: (file.content_type if file.respond_to?(:content_type)))
      end

      # @param thing [Object]
      # @return [Boolean] whether it can be read piece by piece; a Pathname has `read` as well, and begins anew with each
      # @api private
      def self.readable?(thing) = thing.respond_to?(:read) && !thing.respond_to?(:binread)

      # @return [String, #read]
      attr_reader :content
      # @return [String, nil]
      attr_reader :filename
      # @return [String, nil]
      attr_reader :content_type

      # @param content [String, #read] the bytes, or what they are read from, once
      # @param filename [String, nil] what the server is told; nil: none, and a part that is read is called "file"
      # @param content_type [String, nil] nil: application/octet-stream where there is a file name, else none
      # @raise [ArgumentError]
      def initialize(content, filename: nil, content_type: nil)
        raise ArgumentError, "the content of a part is a #{content.class}; it is a String, or what can be read, as File.open(path) is" unless content.is_a?(String) || Part.readable?(content)
        @content = content
        @filename = filename&.to_s || (UNNAMED unless content.is_a?(String))
        @content_type = content_type&.to_s || (UNKNOWN if @filename)
        raise ArgumentError, "the content type of a part has a control character" if @content_type&.b&.match?(CONTROL)
        freeze
      end

      # @return [String] without the content
      def inspect = "#<#{self.class} #{[@filename&.inspect, @content_type].compact.join(" ")}>"
    end
  end
end
