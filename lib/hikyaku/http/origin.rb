# frozen_string_literal: true

module Hikyaku
  module HTTP
    # Scheme, host and port: who is asked. RFC 9110, section 4.3.
    class Origin
      PORTS = {"http" => 80, "https" => 443}.freeze

      # @return [String] "http" or "https"
      attr_reader :scheme
      # @return [String] in lower case, an IPv6 address with its brackets
      attr_reader :host
      # @return [Integer]
      attr_reader :port
      # @return [String] as it stands in the field Host: with the port, unless it is the scheme's own
      attr_reader :authority

      # @param scheme [String]
      # @param host [String]
      # @param port [Integer]
      def initialize(scheme, host, port)
        @scheme = -scheme
        @host = -host
        @port = port
        @authority = (port == PORTS.fetch(scheme)) ? @host : -"#{host}:#{port}"
        @to_s = -"#{scheme}://#{@authority}"
        freeze
      end

      # @return [Boolean]
      def tls? = @scheme == "https"

      # @return [String] the host as the system's resolver takes it
      def hostname = @host.delete_prefix("[").delete_suffix("]")

      # @return [Boolean]
      def ==(other) = other.is_a?(Origin) && other.to_s == @to_s
      alias_method :eql?, :==

      # @return [Integer]
      def hash = @to_s.hash

      # @return [String] as the URL of an origin is written
      attr_reader :to_s

      # @return [String]
      def inspect = "#<#{self.class} #{@to_s}>"
    end
  end
end
