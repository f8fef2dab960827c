# frozen_string_literal: true

require_relative "../errors"

module Hikyaku
  module HTTP
    class Client
      # On what terms somebody waits for an answer, who may share it with others that have their own: a value.
      class RequestOptions
        attr_reader :total

        def initialize(total: nil, retries: 0, raise_for_status: false)
          @total = total
          @retries = retries
          @raise_for_status = raise_for_status
          freeze
        end

        def retry?(before) = before < @retries

        def objection(response) = (BadStatus.new(response) if @raise_for_status && response.bad?)
      end
    end
  end
end
