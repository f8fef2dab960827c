# frozen_string_literal: true

module Hikyaku
  module HTTP
    class Proxy
      # Which header fields of a browser's go on to an origin. In a slow uplink the 400 bytes that a browser says with every image take longer than the image.
      #
      # What a server answers depends on the fields that its `Vary` names, and on no others (RFC 9110, section 12.5.5): so says the protocol. The first
      # request for each kind of resource carries everything that the browser said. The others, at once and for a day:
      #
      # - always: Authorization, Cookie, Range, conditions, Cache-Control, Pragma and Via;
      # - what Vary named in any answer of that kind; after `Vary: *` everything;
      # - Accept-Encoding for what can be compressed;
      # - not: Accept, Accept-Language, User-Agent, Referer and whatever else the browser adds.
      #
      # A server that refuses such a request (a status from 400) gets everything again at once, and from then on; one whose answer depends on what was
      # left out is asked again with that.
      class Fields
        ALWAYS = %w[authorization cookie range if-none-match if-modified-since if-match if-unmodified-since if-range cache-control pragma via].freeze
        # Images are compressed already.
        COMPRESSIBLE = %i[document style script other].freeze
        MOST_NAMES = 20
        MOST_ASKED = 10_000
        private_constant :ALWAYS, :COMPRESSIBLE, :MOST_NAMES, :MOST_ASKED

        # @param vary [String, nil] the value of a field Vary
        # @return [Array<String>] what it names, in lower case
        def self.named(vary) = vary.to_s.downcase.split(",").map(&:strip).reject(&:empty?)

        # @param vary [String, nil] the value of a field Vary
        # @param said [Array<Array(String, String)>] by the browser
        # @param sent [Array<Array(String, String)>]
        # @return [Boolean] whether something was left out on which the answer depends
        def self.missed?(vary, said, sent)
          left_out = (said - sent).map(&:first)
          names = named(vary)
          names.include?("*") ? left_out.any? : (names & left_out).any?
        end

        # @param memory [Client::Memory]
        # @param all [Boolean] whether every field goes on, always
        def initialize(memory, all: false)
          @memory = memory
          @all = all
          @lock = Mutex.new
          @asked = {}
        end

        # @param origin [Origin]
        # @param kind [Symbol] :document, :image, :style, :script, :font or :other
        # @param headers [Array<Array(String, String)>] end-to-end fields as the browser said them, names in lower case
        # @return [Array<Array(String, String)>] those that go on
        def for(origin, kind, headers)
          return headers if @all || kind == :document
          named = varied(origin, kind) || (first?(origin, kind) ? ["*"] : [])
          return headers if named.include?("*")
          headers.select { |name, _| ALWAYS.include?(name) || named.include?(name) || (name == "accept-encoding" && COMPRESSIBLE.include?(kind)) }
        end

        # An answer came, of whatever status: what one depends on, the next may.
        #
        # @param vary [String, nil] the value of its field Vary
        # @return [void]
        def answered(origin, kind, vary)
          known = varied(origin, kind)
          all = (known || []) | self.class.named(vary)
          all = ["*"] if all.size > MOST_NAMES
          write(origin, kind, all) unless all == known
        end

        # It refused a request that carried less.
        #
        # @return [void]
        def refused(origin, kind) = write(origin, kind, ["*"])

        private

        # Of a server that nothing is known of, in this process.
        def first?(origin, kind) = @lock.synchronize { @asked.size < MOST_ASKED && !@asked.key?([origin, kind]) && (@asked[[origin, kind]] = true) }

        def varied(origin, kind)
          names = @memory.read(key(origin))["kinds"]
          found = names[kind.to_s] if names.is_a?(Hash)
          found if found.is_a?(Array) && found.all?(String)
        end

        def write(origin, kind, names)
          kinds = @memory.read(key(origin))["kinds"]
          @memory.write(key(origin), {"kinds" => (kinds.is_a?(Hash) ? kinds : {}).merge(kind.to_s => names)})
        end

        def key(origin) = "fields of #{origin}"
      end
    end
  end
end
