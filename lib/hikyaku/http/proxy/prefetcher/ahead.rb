# frozen_string_literal: true

require_relative "../fields"

module Hikyaku
  module HTTP
    class Proxy
      class Prefetcher
        # What was fetched ahead: the fetch, for a page of which origin, what the browser was taken to say and what of it was sent, and the page's note of it.
        Ahead = Struct.new(:fetch, :origin, :said, :sent, :at, :note, keyword_init: true) do
          # @return [Visits::Page]
          def page = note.page

          # @return [Boolean] whether not all was sent
          def slim = sent.size < said.size

          # RFC 9110, section 12.5.5: whether another request would have been answered alike.
          #
          # @param headers [Array<Array(String, String)>]
          # @param response [Response]
          # @return [Boolean]
          def suits?(headers, response)
            names = Fields.named(response["vary"])
            !names.include?("*") && alike?(sent, headers, names)
          end

          # @return [Boolean] whether it is for who says this
          def identified?(headers) = alike?(said, headers, IDENTIFYING)

          # @return [Boolean] whether it is not there yet
          def pending? = !fetch.done?

          # @return [Integer] that it takes, once it is there
          def bytes = (pending? || fetch.outcome.error) ? 0 : fetch.outcome.body.bytesize

          private

          def alike?(one, other, names) = names.all? { |name| one.assoc(name)&.last == other.assoc(name)&.last }
        end

        # Whose it is, and which part of it: what was fetched is only for a request that says the same of these.
        IDENTIFYING = %w[cookie authorization range].freeze
        private_constant :IDENTIFYING
      end
    end
  end
end
