# frozen_string_literal: true

require_relative "host"
require_relative "path"
require_relative "percent"

module Hikyaku
  class URL
    # The URL parser of the standard, cut along the delimiters rather than run character by character.
    #
    #     scheme ":" ─┬─ file ──────────────► drive letters, perhaps a host ─► path
    #                 ├─ special: slashes ──► authority ─────────────────────► path
    #                 ├─ "//" ──────────────► authority ─────────────────────► path
    #                 ├─ "/" ────────────────────────────────────────────────► path
    #                 └─ anything else ──────────────────────────────────────► opaque path
    #     no scheme: what is missing comes from the base
    #
    # WHATWG URL Standard, "Basic URL parser". One object for one parse.
    class Parser
      SCHEME = /\A([A-Za-z][A-Za-z0-9+\-.]*):/
      DRIVE = /\A[A-Za-z][:|](?:[\/\\?\#]|\z)/
      NOT_SPACE = /[^\x00-\x20]/
      private_constant :SCHEME, :DRIVE, :NOT_SPACE

      def initialize(string, base)
        @input = trimmed(string)
        @base = base
        @username = @password = @hostname = @port = ""
        @host = false
        @path = Path.new
      end

      def parse
        rest, hash, = @input.partition("#").then { |before, mark, after| [before, mark.empty? ? nil : after] }
        @hash = hash && Percent.encode(hash, :fragment)
        if (match = SCHEME.match(@input))
          self.protocol = match[1].downcase
          return unless with_scheme(rest.delete_prefix(match[0]))
        else
          return unless @base && without_scheme(rest)
        end
        url
      end

      private

      # From both ends: an expression that looks for white space before the end tries it again at every place of every run.
      def trimmed(string)
        first = string.index(NOT_SPACE) or return ""
        string[first..string.rindex(NOT_SPACE)].delete("\t\n\r")
      end

      def url
        URL.new(protocol: @protocol, username: @username, password: @password, hostname: @hostname, port: @port,
          pathname: @path.to_s, search: @query, hash: @hash, opaque: @path.opaque?, host: @host)
      end

      def protocol=(protocol)
        @protocol = protocol
        @special = PORTS.key?(protocol)
        @slash = @special ? /[\/\\]/ : /\//
      end

      def with_scheme(rest)
        if @protocol == "file" then file(rest, (@base if @base&.protocol == "file"))
        elsif @special && @protocol == @base&.protocol && !rest.start_with?("//") then relative(rest)
        elsif @special then authority(rest.sub(/\A[\/\\]+/, ""))
        elsif rest.start_with?("//") then authority(rest[2..])
        elsif rest.start_with?("/") then path(rest[1..])
        else opaque(rest)
        end
      end

      def without_scheme(rest)
        if @base.opaque_path?
          return unless rest.empty? && @hash
          inherit(:path, :query)
        elsif @base.protocol == "file"
          file(rest, @base)
        else
          relative(rest)
        end
      end

      # Takes from the base: its scheme always; the authority, path or query when told.
      def inherit(*parts)
        self.protocol = @base.protocol
        if parts.include?(:authority)
          @username, @password, @hostname, @port, @host = @base.username, @base.password, @base.hostname, @base.port, @base.host?
        end
        @path = Path.of(@base) if parts.include?(:path)
        @query = @base.query if parts.include?(:query)
        true
      end

      def relative(rest)
        inherit
        if rest.match?(/\A#{@slash}{2}/)
          authority(@special ? rest.sub(/\A[\/\\]+/, "") : rest[2..])
        elsif rest.match?(/\A#{@slash}/)
          inherit(:authority)
          path(rest[1..])
        else
          from_base(rest) { @path.shorten(@protocol) }
        end
      end

      # An empty reference is the base's path and query; "?" keeps the path; all else starts from a part of it.
      def from_base(rest)
        inherit(:authority, :path)
        if rest.empty? then inherit(:query)
        elsif rest.start_with?("?") then query(rest[1..])
        else
          yield
          path(rest)
        end
      end

      def authority(rest)
        ended = rest.index(@special ? /[\/\\?]/ : /[\/?]/) || rest.size
        credentials, at, host = rest[0, ended].rpartition("@")
        return if !at.empty? && host.empty?
        userinfo(credentials) unless at.empty?
        host_and_port(host) && path_start(rest[ended..])
      end

      def userinfo(credentials)
        username, _, password = credentials.partition(":")
        @username = Percent.encode(username, :userinfo)
        @password = Percent.encode(password, :userinfo)
      end

      def host_and_port(string)
        host, colon, port = split_port(string)
        return if host.empty? && (@special || !colon.empty?)
        @host = true
        @hostname = host.empty? ? "" : Host.parse(host, @special)
        return unless @hostname && port.match?(/\A[0-9]*\z/)
        port = port.sub(/\A0+(?=[0-9])/, "")
        return if port.size > 5 || port.to_i > 65_535
        @port = (port == PORTS[@protocol]) ? "" : port
      end

      # The first colon outside brackets.
      def split_port(string)
        return string.partition(":") unless string.include?("[")
        inside = false
        string.each_char.with_index do |char, index|
          if char == ":" && !inside then return [string[0, index], ":", string[index + 1..]]
          elsif char == "[" then inside = true
          elsif char == "]" then inside = false
          end
        end
        [string, "", ""]
      end

      def file(rest, base)
        self.protocol = "file"
        @host = true
        if rest.match?(/\A[\/\\]{2}/) then file_host(rest[2..])
        elsif rest.match?(/\A[\/\\]/)
          @hostname = base.hostname if base
          @path.take_drive(base) if base && !DRIVE.match?(rest[1..])
          path(rest[1..])
        elsif base
          from_base(rest) { DRIVE.match?(rest) ? @path = Path.new : @path.shorten("file") }
        else
          path_start(rest)
        end
      end

      def file_host(rest)
        ended = rest.index(/[\/\\?]/) || rest.size
        host = rest[0, ended]
        return path(rest) if host.match?(/\A[A-Za-z][:|]\z/)
        unless host.empty?
          @hostname = Host.parse(host, true) or return
          @hostname = "" if @hostname == "localhost"
        end
        path_start(rest[ended..])
      end

      # What follows an authority: of a URL that is not special it may be nothing.
      def path_start(rest)
        return path(rest.sub(/\A#{@slash}/, "")) if @special || rest.start_with?("/")
        query(rest[1..]) if rest.start_with?("?")
        true
      end

      def path(rest)
        path, mark, query = rest.partition("?")
        @path.append(path, @protocol)
        query(query) unless mark.empty?
        true
      end

      def opaque(rest)
        path, mark, query = rest.partition("?")
        @path = Path.opaque(path, followed: !mark.empty? || !@hash.nil?)
        query(query) unless mark.empty?
        true
      end

      def query(string)
        @query = Percent.encode(string, @special ? :special_query : :query)
        true
      end
    end
    private_constant :Parser
  end
end
