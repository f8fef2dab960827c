# frozen_string_literal: true

require "rbconfig"
require_relative "build"
require_relative "token"

module Bench
  # A server that takes part: how it is started, and what the load says to it.
  Entrant = Struct.new(:name, :title, :command, :load, keyword_init: true)

  # All who take part. A benchmark goes through this list: no row of a table is written by hand.
  module Entrants
    ROOT = File.expand_path("../..", __dir__)
    HUB_PATH = "/.well-known/mercure"
    TOPIC = "https://example.com/t/{t}"

    FLOOR = Entrant.new(
      name: "floor", title: "bare send() loop in C",
      command: ->(port) { [Build.program("floor"), port.to_s] },
      load: ->(_port) { {publish_prefix: "topic=#{TOPIC}&data="} }
    )

    # Ordinary settings: the connections come from many addresses, so no limit stands in the way.
    HIKYAKU = Entrant.new(
      name: "hikyaku", title: "Hikyaku, Ruby engine",
      command: lambda { |port|
        [RbConfig.ruby, File.join(ROOT, "exe/hikyaku"), "serve", "--listen", "127.0.0.1:#{port}", "--anonymous",
          "--issuer", Token::ISSUER, "--publisher-key", Token::KEY]
      },
      load: lambda { |port|
        {subscribe_path: "#{HUB_PATH}?match=#{TOPIC}", publish_path: HUB_PATH, publish_prefix: "topic=#{TOPIC}&data=",
         publish_header: "Authorization: Bearer #{Token.publisher("http://127.0.0.1:#{port}#{HUB_PATH}")}"}
      }
    )

    PEERS = {
      "naive" => "Puma, write_nonblock loop",
      "threads" => "Puma, thread and queue per client"
    }.map { |name, title|
      Entrant.new(
        name: name, title: title,
        command: lambda { |port|
          [RbConfig.ruby, Gem.bin_path("puma", "puma"), "--bind", "tcp://127.0.0.1:#{port}", "--threads", "5:5",
            "--environment", "production", "--quiet", File.join(ROOT, "bench/peers/#{name}.ru")]
        },
        load: ->(_port) { {publish_prefix: "topic=#{TOPIC}&data="} }
      )
    }.freeze
  end
end
