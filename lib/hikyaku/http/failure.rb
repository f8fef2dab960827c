# frozen_string_literal: true

require_relative "errors"

module Hikyaku
  module HTTP
    # What stands in the place of a response that did not come, among those that did.
    class Failure
      # @return [RequestFailed]
      attr_reader :error
      # @return [String]
      attr_reader :url

      # @api private
      def initialize(error, url)
        @error = error
        @url = url
        freeze
      end

      # @return [Boolean] never
      def ok? = false

      # @return [nil]
      def status = nil

      # There is none: nor a body, headers, a text, or an object.
      #
      # @return [void] never
      # @raise [RequestFailed] always
      def value = raise(@error)
      alias_method :body, :value
      alias_method :headers, :value
      alias_method :text, :value
      alias_method :raise_for_status, :value

      # @param limits [Hash] see {Response#json}
      # @return [void] never
      # @raise [RequestFailed] always
      def json(**limits) = value
      alias_method :object, :json

      # @return [String]
      def inspect = "#<#{self.class} #{@url} #{@error.message}>"
    end
  end
end
