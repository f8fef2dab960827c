# frozen_string_literal: true

require_relative "../harness/entrant"
require_relative "../harness/peer_gems"

module Bench
  # message_bus in Puma: message_bus.ru.
  class MessageBus < Entrant
    APPLICATION = File.join(__dir__, "message_bus.ru")
    # From now on: a reader that has read nothing yet.
    LAST = "-1"

    def suites = [Suite::ACTION_CABLE]

    def prepare = PeerGems.prepare

    def versions = PeerGems.versions("message_bus")

    def command(port, _folder, settings)
      [[*PeerGems.command("puma"), "--bind", "tcp://#{settings[:host]}:#{port}", "--threads", "5:5", "--environment", "production", "--quiet",
        APPLICATION], PeerGems.environment]
    end

    def speech(**) = {subscribe_path: "/message-bus/reader{n}/poll", subscribe_body: "/{t}=#{LAST}", publish_path: "/{t}"}
  end

  Entrants.add MessageBus.new("message-bus", "message_bus, memory")
end
