# frozen_string_literal: true

require_relative "address"
require_relative "part"
require_relative "request/size"

module Hikyaku
  module HTTP
    # What a caller asks for: a value.
    class Request
      SAFE = %w[GET HEAD OPTIONS TRACE].freeze
      IDEMPOTENT = [*SAFE, "PUT", "DELETE"].freeze
      TOKEN = /\A[!#$%&'*+\-.^_`|~0-9A-Za-z]+\z/
      # No control byte but the tab stands in a value.
      CONTROL = /[\x00-\x08\x0A-\x1F\x7F]/n
      # What frames a message, or belongs to the connection, is the client's own affair.
      OURS = %w[connection content-length keep-alive proxy-connection te trailer transfer-encoding upgrade expect].freeze
      LENGTH = "content-length"
      NUMBER = /\A[0-9]{1,18}\z/
      MOST_HEADERS = 100
      MOST_METHOD_BYTES = 32
      USUAL = {"GET" => "GET", "HEAD" => "HEAD", "POST" => "POST"}.freeze
      NONE = [].freeze
      # What a page cannot be shown without comes first.
      FIRST = {"" => 0, "html" => 0, "htm" => 0, "php" => 0, "css" => 1, "js" => 1, "mjs" => 1, "woff2" => 2, "woff" => 2}.freeze
      LATER = 3
      private_constant :USUAL, :NONE, :SAFE, :IDEMPOTENT, :TOKEN, :CONTROL, :OURS, :LENGTH, :NUMBER, :MOST_HEADERS, :MOST_METHOD_BYTES, :FIRST, :LATER

      # @return [String] in upper case
      attr_reader :method
      # @return [Address]
      attr_reader :address
      # @return [Array<Array(String, String)>] names in lower case, and values, binary
      attr_reader :headers
      # @return [String, #read, nil]
      attr_reader :body
      # @return [Numeric] what is lower is more urgent
      attr_reader :priority
      # @return [Array] the same for requests that have the same answer
      attr_reader :key
      # @return [Integer, nil] bytes of a body that is read, where they are known
      attr_reader :length

      # @param method [String, Symbol]
      # @param url [String, URI, Address]
      # @param headers [Hash, Array<Array(String, String)>] several values of a name as an Array
      # @param body [String, #read, nil] something that is read is sent once only; in chunks, where neither it nor the field Content-Length says how long it is
      # @param priority [Numeric, nil] what is lower is asked for earlier; nil: by the kind of the resource
      # @param alone [Boolean] whether it wants a connection to itself
      # @raise [InvalidURL, ArgumentError]
      def initialize(method, url, headers: {}, body: nil, priority: nil, alone: false)
        @method = USUAL[method] || checked_method(method)
        @address = Address.parse(url)
        raise ArgumentError, "the body is a #{body.class}; it is a String, or what can be read, as File.open(path) is" unless body.nil? || body.is_a?(String) || Part.readable?(body)
        @body = body.is_a?(String) ? body.b.freeze : body
        @length = nil
        @headers = headers.empty? ? NONE : checked(headers)
        @length ||= Size.left(body) if once?
        @priority = priority ? checked_priority(priority) : FIRST.fetch(@address.extension, LATER)
        @alone = alone || !@body.nil?
        @key = [@method, @address.url, @headers].freeze
        freeze
      end

      # @return [Boolean] whether asking changes nothing: RFC 9110, section 9.2.1
      def safe? = SAFE.include?(@method)

      # @return [Boolean] whether asking twice is as asking once: RFC 9110, section 9.2.2
      def idempotent? = IDEMPOTENT.include?(@method) && !once?

      # @return [Boolean] whether others may be under way on its connection
      def pipelined? = safe? && !@alone

      # @return [Boolean] whether others who ask for the same may have the same answer
      def shared? = pipelined? && (@method == "GET" || @method == "HEAD")

      # @param name [String] in lower case
      # @return [String, nil] the first value
      def [](name) = @headers.assoc(name)&.last

      # @param address [Address]
      # @param method [String]
      # @param headers [Array<Array(String, String)>]
      # @param body [String, nil]
      # @return [Request] what a redirect leads to
      def redirected(address, method: @method, headers: @headers, body: @body)
        self.class.new(method, address, headers: headers, body: body, priority: @priority, alone: @alone)
      end

      # @return [Boolean] whether its body can be read but once
      def once? = !@body.nil? && !@body.is_a?(String)

      # @return [String] without what may be secret
      def inspect = "#<#{self.class} #{@method} #{@address.url}>"

      private

      def checked_method(method)
        method = -method.to_s.upcase
        raise ArgumentError, "#{method[0, MOST_METHOD_BYTES].inspect} is no method" unless method.match?(TOKEN) && method.bytesize <= MOST_METHOD_BYTES
        raise ArgumentError, "CONNECT makes a tunnel, for which there is the proxy: setting" if method == "CONNECT"
        method
      end

      def checked_priority(priority)
        return priority if priority.is_a?(Numeric) && priority.real? && priority.to_f.finite?
        raise ArgumentError, "the priority is #{priority.inspect[0, 40]}; it is a number, or nil"
      end

      def checked(headers)
        pairs = headers.flat_map { |name, values| Array(values).map { |value| pair(name.to_s, value.to_s) } }
        raise ArgumentError, "there are more than #{MOST_HEADERS} header fields" if pairs.size > MOST_HEADERS
        pairs.freeze
      end

      def pair(name, value)
        lower = -name.downcase.b
        raise ArgumentError, "#{name[0, 40].inspect} cannot be the name of a header field" unless lower.match?(TOKEN)
        raise ArgumentError, "the field #{lower} is set by the client itself" if OURS.include?(lower) && !(lower == LENGTH && once?)
        bytes = value.b.strip
        raise ArgumentError, "the value of the field #{lower} has a control character" if bytes.match?(CONTROL)
        announce(bytes) if lower == LENGTH
        [lower, bytes.freeze].freeze
      end

      # The caller knows how long it is.
      def announce(bytes)
        said = bytes.match?(NUMBER) ? bytes.to_i : raise(ArgumentError, "the field content-length is #{bytes[0, 40].inspect}; it is a number of bytes")
        raise ArgumentError, "the field content-length says both #{@length} and #{said}" if @length
        @length = said
      end
    end
  end
end
