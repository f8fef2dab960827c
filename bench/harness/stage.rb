# frozen_string_literal: true

require_relative "load"

module Bench
  # A server that runs, and the loads that are put on it one after another.
  class Stage
    # @return [Server]
    attr_reader :server
    # @return [Hash] options of every load
    attr_reader :speech

    # @param server [Server]
    # @param speech [Hash] see {Entrant#speech}
    def initialize(server, speech)
      @server = server
      @speech = speech
      @whole = true
    end

    # What a server loads and allocates with its first requests is not what is measured.
    def wake = load(subscribers: 20, messages: 5, settle: 50, topics: 1)

    # @param options [Hash] see {Load.run}
    # @return [Hash] figures
    def load(**options, &on_phase)
      figures = Load.run(port: server.port, pid: server.pids, **speech, **options, &on_phase)
      @whole &&= figures["whole"]
      figures
    end

    # @return [Boolean] whether no load lost, or got wrong, anything
    def whole? = @whole
  end
end
