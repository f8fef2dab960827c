# frozen_string_literal: true

require_relative "../support/hop_by_hop"
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
      OURS = [*Support::HopByHop::FIELDS, "content-length", "expect"].freeze
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

      attr_reader :method
      attr_reader :address
      attr_reader :headers
      attr_reader :body
      attr_reader :priority
      attr_reader :key
      attr_reader :length

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

      def safe? = SAFE.include?(@method)

      def idempotent? = IDEMPOTENT.include?(@method) && !once?

      def pipelined? = safe? && !@alone

      def shared? = pipelined? && (@method == "GET" || @method == "HEAD")

      def [](name) = @headers.assoc(name)&.last

      def redirected(address, method: @method, headers: @headers, body: @body)
        self.class.new(method, address, headers: headers, body: body, priority: @priority, alone: @alone)
      end

      def once? = !@body.nil? && !@body.is_a?(String)

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
