# frozen_string_literal: true

require_relative "percent"

module Hikyaku
  class URL
    # The path of a URL while it is built: a list of segments, or one opaque string.
    #
    # WHATWG URL Standard, "path state", "opaque path state" and "shorten a url's path".
    class Path
      SINGLE_DOT = /\A(?:\.|%2e)\z/i
      DOUBLE_DOT = /\A(?:\.|%2e){2}\z/i
      DRIVE = /\A[A-Za-z][:|]\z/
      CANONICAL_DRIVE = /\A[A-Za-z]:\z/
      private_constant :SINGLE_DOT, :DOUBLE_DOT, :DRIVE, :CANONICAL_DRIVE

      class << self
        def of(url)
          return new(string: url.pathname) if url.opaque_path?
          new(segments: url.pathname.split("/", -1).drop(1))
        end

        def opaque(string, followed:)
          string = Percent.encode(string, :control)
          string = "#{string[0..-2]}%20" if followed && string.end_with?(" ")
          new(string: string)
        end
      end

      def initialize(segments: [], string: nil)
        @segments = segments
        @string = string
      end

      def opaque? = !@string.nil?

      def append(string, protocol)
        segments = string.split(PORTS.key?(protocol) ? /[\/\\]/ : "/", -1)
        segments << "" if segments.empty?
        last = segments.pop
        segments.each { |segment| add(segment, protocol) }
        @segments << "" unless add(last, protocol)
      end

      # Drops the last segment, unless it is the drive letter of a file.
      def shorten(protocol)
        return if protocol == "file" && @segments.size == 1 && CANONICAL_DRIVE.match?(@segments.first)
        @segments.pop
      end

      def take_drive(base)
        drive = base.pathname[%r{\A/([A-Za-z]:)(?:/|\z)}, 1]
        @segments << drive if drive
      end

      def to_s
        return @string if @string
        @segments.empty? ? "" : "/#{@segments.join("/")}"
      end

      private

      # Whether something was added: dot segments are not.
      def add(segment, protocol)
        if DOUBLE_DOT.match?(segment)
          shorten(protocol)
          nil
        elsif !SINGLE_DOT.match?(segment)
          segment = "#{segment[0]}:" if protocol == "file" && @segments.empty? && DRIVE.match?(segment)
          @segments << Percent.encode(segment, :path)
        end
      end
    end
  end
end
