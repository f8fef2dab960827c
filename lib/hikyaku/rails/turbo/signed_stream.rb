# frozen_string_literal: true

require "json"
require_relative "signed_name"

module Hikyaku
  module Turbo
    # The stream that an element of a page follows, as turbo_stream_from signs it: its name; with `channel:` and `data-` attributes,
    # these too, so that a page can neither leave them out nor change them.
    #
    # @!attribute name
    #   @return [String] the stream's name, from what the view gave
    # @!attribute class_name
    #   @return [String, nil] of the class that chooses the stream in the end
    # @!attribute params
    #   @return [Hash{String => String}] the `data-` attributes
    #
    # @api private
    SignedStream = Struct.new(:name, :class_name, :params)

    class SignedStream
      PURPOSE = "hikyaku stream"
      private_constant :PURPOSE

      def self.open(signed)
        name, reason = SignedName.open(signed)
        return [new(name, nil, {}), nil] if name
        text, why = SignedName.open(signed, purpose: PURPOSE)
        return [new(*JSON.parse(text)), nil] if text
        [nil, (why == "invalid") ? reason : why]
      end

      # The `data-` attributes of an element, under the names that Action Cable's element gives them.
      def self.params_of(element)
        data = Nokogiri::HTML5.fragment(element).first_element_child.to_h.select { |name, _value| name.start_with?("data-") }
        # As that script does: of capitals in a row it makes one word.
        data.transform_keys { |name| name.delete_prefix("data-").gsub(/-([a-z])/) { $1.upcase }.gsub(/[A-Z]+/) { |capitals| "_#{capitals.downcase}" } }
      end

      def plain? = class_name.nil? && params.empty?

      def sign = plain? ? SignedName.make(name) : SignedName.make(JSON.generate(to_a), purpose: PURPOSE, called: name)
    end
  end
end
