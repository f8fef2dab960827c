# frozen_string_literal: true

require_relative "well_behaved"

module Misbehaving
  # Answers two requests in the wrong order, if the second comes before it has answered the first.
  class AnswersOutOfOrder < WellBehaved
    # @param reveals [Symbol] how a client can see it: :content_location, :etag, :type or :nothing
    # @param seconds [Numeric] how long it waits for the second
    def initialize(reveals: :content_location, seconds: 0.05)
      @reveals = reveals
      @seconds = seconds
    end

    def misbehave(connection, request)
      second = connection.more?(@seconds) ? connection.read : nil
      [second, request].compact.each { |each| connection.write(revealing(each).bytes) }
    end

    private

    def revealing(request)
      answer = Answer.to(request)
      answer = answer.with("ETag" => nil) unless @reveals == :etag
      answer = answer.with("Content-Type" => "application/octet-stream") unless @reveals == :type
      (@reveals == :content_location) ? answer.with("Content-Location" => request.path) : answer
    end
  end
end
