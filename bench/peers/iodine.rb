# frozen_string_literal: true

require_relative "../harness/entrant"
require_relative "../harness/peer_gems"

module Bench
  # Iodine, a web server with publish and subscribe built in, in C: one process, one thread.
  class Iodine < Entrant
    APPLICATION = File.join(__dir__, "iodine.ru")

    def suites = [Suite::ACTION_CABLE]

    def prepare = PeerGems.prepare

    def versions = PeerGems.versions("iodine")

    def command(port, _folder, settings)
      [[*PeerGems.command("iodine"), "-b", settings[:host], "-p", port.to_s, "-w", "1", "-t", "1", APPLICATION], PeerGems.environment]
    end

    def speech(**) = {subscribe_path: "/{t}", publish_path: "/{t}"}
  end

  Entrants.add Iodine.new("iodine", "Iodine")
end
