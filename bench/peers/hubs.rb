# frozen_string_literal: true

require "etc"
require "json"
require "shellwords"
require_relative "../harness/hikyaku"

module Bench
  # Nchan, the nginx module of Debian, with the configuration beside this file.
  class Nchan < Entrant
    MODULE = "/usr/{lib,lib64,share}/nginx/modules/ngx_nchan_module.so"
    SPARE_FILES = 500

    # A topic is a number: the body of a publish is the message and nothing else.
    def initialize
      super("nchan", "Nchan", needs: [DebianPackage.new("libnginx-mod-nchan", "nginx", MODULE)], speech: {subscribe_path: "/subscribe?t={t}", publish_path: "/publish?t={t}"})
    end

    def command(port, folder, _settings)
      files = Process.getrlimit(:NOFILE).last
      user = Process.uid.zero? ? "user #{Etc.getpwuid.name} #{Etc.getgrgid.name};" : ""
      values = {"user" => user, "module" => Dir[MODULE].first, "files" => files, "connections" => files - SPARE_FILES, "folder" => folder, "port" => port}
      path = File.join(folder, "nginx.conf")
      File.write(path, File.read(File.join(__dir__, "nchan.conf")).gsub(/{{(\w+)}}/) { values.fetch($1).to_s })
      [[DebianPackage.find("nginx"), "-p", folder, "-e", File.join(folder, "error.log"), "-c", path], {}]
    end

    def versions = {"nginx" => (`nginx -v 2>&1`[%r{nginx/(\S+)}, 1] if DebianPackage.find("nginx")), "nchan" => super.values.first}.compact
  end

  Entrants.add Nchan.new

  GEMS = GemSet.new("peers")
  PATHS = {subscribe_path: "/{t}", publish_path: "/{t}"}.freeze # a topic is a path

  # What one writes in Puma without a hub.
  {"naive" => "Puma, write_nonblock loop", "threads" => "Puma, thread and queue per client"}.each do |name, title|
    Entrants.add(Entrant.new(name, title, suites: %w[all action_cable], speech: PATHS) { |port, _, settings|
      Entrant.puma(File.join(__dir__, "#{name}.ru"), settings[:host], port)
    })
  end

  # Iodine, a web server with publish and subscribe in C: one process, one thread.
  Entrants.add(Entrant.new("iodine", "Iodine", suites: ["action_cable"], needs: [GEMS.with("iodine")], speech: PATHS) { |port, _, settings|
    [[*GEMS.command("iodine"), "-b", settings[:host], "-p", port.to_s, "-w", "1", "-t", "1", File.join(__dir__, "iodine.ru")], GEMS.environment]
  })

  # message_bus in Puma. The position -1 is that of a reader that has read nothing yet.
  Entrants.add(Entrant.new("message-bus", "message_bus, memory", suites: ["action_cable"], needs: [GEMS.with("message_bus")],
    speech: {subscribe_path: "/message-bus/reader{n}/poll", subscribe_body: "/{t}=-1", publish_path: "/{t}"}) { |port, _, settings|
      [Entrant.puma(File.join(__dir__, "message_bus.ru"), settings[:host], port, GEMS.command("puma")), GEMS.environment]
    })

  # One Rails application in Puma, rails/application.rb. It has up to four doors through which one publishes:
  #
  #     action   a POST to an action of the application
  #     within   a thread of the application, without a request that Puma and Rails handle: a job, or a callback after a commit
  #     hub      Hikyaku: a POST to the hub's own address
  #     socket   Action Cable: a command over the WebSocket of a subscriber
  module InRails
    FOLDER = File.expand_path("rails", __dir__)
    FORM = {publish_path: "/publish", publish_prefix: "topic={t}&data="}.freeze

    def stage(server, door: doors.first, **more)
      super(server, door: door, publish_port: (Integer(File.read(@ports.fetch(server.port))) if door == "within"), **more)
    end

    private

    def puma(port, folder, host, environment)
      (@ports ||= {})[port] = File.join(folder, "within")
      [Entrant.puma(File.join(FOLDER, "config.ru"), host, port, GEMS.command("puma")), {**GEMS.environment, "BENCH_FOLDER" => folder, "BENCH_HOST" => host, **environment}]
    end
  end

  # Action Cable, with the adapter async or Redis, whose CPU and memory count.
  class Cable < Entrant
    include InRails

    IDENTIFIER = JSON.generate(channel: "NewsChannel", topic: "{t}")

    def initialize(name, title, redis: false)
      super(name, title, suites: ["action_cable"], doors: %w[action within socket], needs: [GEMS.with("rails", "puma", *("redis" if redis)), *(REDIS if redis)])
      @redis = redis
    end

    def command(port, folder, settings)
      words, environment = puma(port, folder, settings[:host], "BENCH_PUSH" => "cable")
      return [words, environment] unless @redis
      redis_port = Server.free_port
      server, = Entrants.fetch("redis").command(redis_port, folder, {level: "memory", host: LOOPBACK})
      [["/bin/sh", BOTH], environment.merge("BENCH_REDIS" => "redis://#{LOOPBACK}:#{redis_port}", "FIRST" => Shellwords.join(server), "SECOND" => Shellwords.join(words), "STOP" => "TERM")]
    end

    # A message goes between the two parts of the command.
    def speech(door: "action", publish_port: nil, **)
      prefix, suffix = JSON.generate(command: "message", identifier: IDENTIFIER, data: JSON.generate(text: "|", action: "speak")).split("|")
      {subscribe_path: "/cable", cable: JSON.generate(command: "subscribe", identifier: IDENTIFIER),
       **((door == "socket") ? {speak: true, publish_prefix: prefix, publish_suffix: suffix} : {publish_port: publish_port, **FORM})}
    end
  end

  # Hikyaku mounted in the same application.
  class HubInRails < Hub
    include InRails

    def initialize(engine, title)
      super("rails-#{engine}", title, engine, suites: ["action_cable"], doors: %w[action within hub])
      @needs = [GEMS.with("rails", "puma")]
    end

    def command(port, folder, settings)
      puma(port, folder, settings[:host], "BENCH_PUSH" => "hikyaku", "BENCH_HUB" => JSON.generate(configuration(folder, settings)))
    end

    def speech(door: "action", publish_port: nil, **) = (door == "hub") ? super : super.except(:publish_header).merge(publish_port: publish_port, **FORM)
  end

  REDIS = DebianPackage.new("redis-server", "redis-server")
  Entrants.add Cable.new("cable-async", "Action Cable, async")
  Entrants.add Cable.new("cable-redis", "Action Cable, Redis", redis: true)
  Entrants.add HubInRails.new("c", "Hikyaku in Rails, C engine")
  Entrants.add HubInRails.new("ruby", "Hikyaku in Rails, Ruby engine")
end
