# frozen_string_literal: true

require_relative "well_behaved"

module Misbehaving
  # Sends interim responses before each answer, though nobody asked for them.
  class InterimFirst < WellBehaved
    LINES = {100 => "100 Continue\r\n", 102 => "102 Processing\r\n", 103 => "103 Early Hints\r\nLink: </style.css>; rel=preload; as=style\r\n"}.freeze
    private_constant :LINES

    # @param statuses [Array<Integer>]
    def initialize(statuses: [100, 103])
      @statuses = statuses
    end

    def misbehave(connection, request)
      @statuses.each { |status| connection.write("HTTP/1.1 #{LINES.fetch(status)}\r\n") }
      behave(connection, request)
    end
  end
end
