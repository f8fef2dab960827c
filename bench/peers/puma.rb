# frozen_string_literal: true

require "rbconfig"
require_relative "../harness/entrant"

module Bench
  # What one writes in Puma without a hub: an application of this folder.
  class PlainPuma < Entrant
    def suites = [Suite::HUB, Suite::ACTION_CABLE]

    def command(port, _folder, settings)
      [[RbConfig.ruby, Gem.bin_path("puma", "puma"), "--bind", "tcp://#{settings.fetch(:host, LOOPBACK)}:#{port}", "--threads", "5:5",
        "--environment", "production", "--quiet", File.join(__dir__, "#{name}.ru")], {}]
    end

    # A topic is a path here: the body of a publish is the message and nothing else.
    def speech(match: TOPIC, type: "exact", topics: [match], **) = {subscribe_path: "/{t}", publish_path: "/{t}"}
  end

  Entrants.add PlainPuma.new("naive", "Puma, write_nonblock loop")
  Entrants.add PlainPuma.new("threads", "Puma, thread and queue per client")
end
