# frozen_string_literal: true

require_relative "malformed"

module Hikyaku
  module HTTP
    class Parser
      # What a request asks for, in one of four forms.
      #
      # RFC 9112, section 3.2.
      class Target
        NAME = /(?:[A-Za-z0-9\-._~!$&'()*+,;=]|%[0-9A-Fa-f]{2})+/n
        # Something like an IPv6 address, which is not looked at more closely: whoever wants to connect to it will.
        LITERAL = /\[[0-9A-Fa-f.]*:[0-9A-Fa-f.]*:[0-9A-Fa-f:.]*\]/n
        AUTHORITY = /\A(?:#{NAME}|#{LITERAL})(?::([0-9]{0,5}))?\z/n
        ABSOLUTE = %r{\A[A-Za-z][A-Za-z0-9+\-.]*://([^/?]*)(.*)\z}n
        private_constant :NAME, :LITERAL, :AUTHORITY, :ABSOLUTE

        # Whether these are a host and perhaps a port, without user information and not empty.
        def self.authority?(bytes, port_needed: false)
          match = AUTHORITY.match(bytes) or return false
          port = match[1].to_s
          port.to_i < 65_536 && !(port_needed && port.empty?)
        end

        attr_reader :text, :form, :path, :query, :authority

        def initialize(method, text)
          @text = text
          @form, @authority, path = read(method)
          @path, @query = split(path)
          freeze
        end

        private

        def read(method)
          return [:authority, checked(@text, port_needed: true), ""] if method == "CONNECT"
          return [:origin, nil, @text] if @text.start_with?("/")
          return [:asterisk, nil, @text] if @text == "*" && method == "OPTIONS"
          _, authority, path = ABSOLUTE.match(@text).to_a
          [:absolute, checked(authority || ""), path]
        end

        def checked(authority, port_needed: false)
          raise Malformed.new(:target) unless self.class.authority?(authority, port_needed: port_needed)
          authority.freeze
        end

        def split(path)
          at = path.index("?") or return [path.freeze, nil]
          [path.byteslice(0, at).freeze, path.byteslice(at + 1, path.bytesize).freeze]
        end
      end
    end
  end
end
