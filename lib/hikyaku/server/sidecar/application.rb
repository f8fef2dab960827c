# frozen_string_literal: true

require "json"
require "rbconfig"
require_relative "../../error"
require_relative "folder"
require_relative "hub_process"
require_relative "hub_settings"

module Hikyaku
  class Server
    class Sidecar
      # The application's own settings of the hub. They are asked of a process that starts the application, says them, and ends,
      # so that neither Puma's master nor the hub has the application in memory; or of this one, if it has it.
      class Application
        FILES = %w[bin/rails config/environment.rb].freeze
        ASK = <<~RUBY
          begin
            require "./config/environment"
          rescue => error
            raise unless defined?(Hikyaku::Railtie::Beside)
          end
          Hikyaku::Railtie::Beside.tell(IO.for_fd(Integer(ARGV.first)), error, url: ARGV[1])
        RUBY
        private_constant :FILES, :ASK

        def self.find = (new if FILES.all? { |path| File.exist?(path) })

        def folder(env = ENV)
          name = [env["RAILS_ENV"], env["RACK_ENV"]].find { |value| !value.to_s.empty? }
          Folder.path_in(Dir.pwd) if [nil, "development"].include?(name)
        end

        # A process that was to hold the hub before it knew of this one (`rails server`) gives it up, with its storage and its place.
        def step_aside = loaded&.step_aside

        def slow? = !loaded

        def plan(url = nil)
          return loaded.plan(url: url) if loaded
          answer = ask(url)
          raise ConfigError, answer["error"] if answer["error"]
          HubSettings.new(answer)
        end

        private

        def loaded = (Railtie::Beside if defined?(Railtie) && Railtie.mount)

        def ask(url)
          reader, writer = IO.pipe
          pid = Process.spawn({Folder::VARIABLE => nil}, RbConfig.ruby, "-e", ASK, writer.fileno.to_s, *url, writer => writer, :in => File::NULL, :close_others => true)
          writer.close
          answer = reader.read
          reap(pid)
          raise Failed, "the application, whose settings the hub has, does not start; what it said stands above" if answer.empty?
          JSON.parse(answer)
        ensure
          [reader, writer].each { |io| io&.close }
        end

        # Puma may have been faster.
        def reap(pid)
          Process.wait(pid)
        rescue Errno::ECHILD
          nil
        end
      end
    end
  end
end
