# frozen_string_literal: true

require "tmpdir"
require "uri"
require_relative "server"
require_relative "stage"
require_relative "suite"

module Bench
  # A server that takes part: how it is started, and what the load says to it.
  class Entrant
    # It cannot take part on this machine; the message says why, and what to do.
    class Unavailable < StandardError
    end

    TOPIC = "https://example.com/t/{t}"
    LOOPBACK = "127.0.0.1"

    # @return [String] on the command line
    attr_reader :name
    # @return [String] in a table
    attr_reader :title

    def initialize(name, title)
      @name = name
      @title = title
    end

    # @return [Array<Suite>] the pages on which it can be
    def suites = [Suite::HUB]

    # Sees to it that everything is there that it needs.
    #
    # @return [void]
    # @raise [Unavailable]
    def prepare
    end

    # @return [Hash{String => String}] of what it is made of, beyond Ruby and its gems
    def versions = {}

    # @param port [Integer] where it is to listen
    # @param folder [String] that it may write to; removed afterwards
    # @param settings [Hash] `host:`, the address on which it is to listen; others of the hub; what this server does not
    #   know it leaves alone
    # @return [Array(Array<String>, Hash)] command, and environment variables
    def command(port, folder, settings)
      raise NotImplementedError
    end

    # In the texts, {t} is a topic's number and {n} that of the subscriber or message.
    #
    # @param match [String] what a subscriber asks for
    # @param type [String] "exact", or "urlpattern" where the server knows that
    # @param topics [Array<String>] what an update is published to
    # @return [Hash] options of {Load}
    def speech(match: TOPIC, type: "exact", topics: [match])
      raise NotImplementedError
    end

    # Starts it, yields once it listens, and stops it.
    #
    # @param link [Link, nil] it runs at the far end of this instead of on the loopback
    # @param settings [Hash] see {#command}
    # @yieldparam server [Server]
    # @return what the block returns
    def run(link: nil, **settings, &block)
      Dir.mktmpdir("bench") do |folder|
        port = Server.free_port
        command, environment = command(port, folder, {host: link ? link.host : LOOPBACK}.merge(settings))
        Server.run(command, port: port, env: environment, within: link ? link.broker : [], &block)
      end
    end

    # @param server [Server] of {#run}
    # @param link [Link, nil] see {#run}
    # @param more [Hash] see {#speech}
    # @return [Stage] what loads are put on it
    def stage(server, link: nil, **more)
      options = speech(**more)
      options = options.merge(host: link.host, within: link.load) if link
      Stage.new(server, options)
    end

    def inspect = "#<#{self.class} #{name}>"

    private

    # Percent-encoded, but for the numbers that the load generator fills in.
    def encoded(text) = URI.encode_www_form_component(text).gsub(/%7B([tn])%7D/, '{\1}')

    def form(topics) = topics.map { |topic| "topic=#{encoded(topic)}&" }.join + "data="
  end
end
