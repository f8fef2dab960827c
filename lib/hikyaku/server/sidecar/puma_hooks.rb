# frozen_string_literal: true

require "json"
require "rbconfig"
require "socket"
require_relative "../sidecar"
require_relative "settings"
require_relative "../../error"
require_relative "folder"
require_relative "hub_process"

module Hikyaku
  class Server
    class Sidecar
      # What `plugin :hikyaku` does in Puma's master: runs a Sidecar, and knows the moments of Puma's life that count for it.
      class PumaHooks
        # Among the sockets that Puma takes along into a hot restart.
        PIPE = "hikyaku:parent-pipe"
        # Of a server that is about to end.
        ENDING = %i[stop restart halt].freeze
        private_constant :PIPE, :ENDING

        def initialize(launcher)
          @launcher = launcher
          @application = Application.find
        end

        # Before Puma has loaded the application. Ends Puma, with a sentence, where there can be no hub.
        def start
          pipe = inherited
          @application&.step_aside
          @folder = pipe ? Folder.named : Folder.make(default: @application&.folder) { |sentence| log(sentence) }
          accompany(pipe)
          ENV[Folder::VARIABLE] = @folder.path
          admit_query
          follow
        rescue Error => error
          @folder&.remove unless pipe
          @launcher.log_writer.error("Hikyaku: #{error.message}")
        end

        private

        def options = @launcher.options

        def cluster? = options[:workers].to_i > 0

        def log(sentence) = @launcher.log_writer.log("* Hikyaku: #{sentence}")

        def accompany(pipe)
          @sidecar = Sidecar.new(@folder, output: output, log: method(:log)) { plan }
          pipe ? @sidecar.keep(pipe, later: @application&.slow?) : @sidecar.start
          log("the hub #{@folder.about[:hub_url]} #{pipe ? "stays" : "is"} process #{@sidecar.pid}")
          # Not what Puma tells of its end, which in single mode comes before the last requests are answered.
          owner = Process.pid
          at_exit { @sidecar.stop if Process.pid == owner }
        end

        def plan
          given = options[:hikyaku] || Settings.new
          url = ServerURL.of(options[:binds])
          return given.plan(url: url) unless @application
          return @application.plan(url) if given.empty?
          raise ConfigError, "the hub of this application has the settings of config.hikyaku: the line `hikyaku …` of puma.rb must go"
        end

        # Where Puma's own goes: it turns that around later.
        def output
          {out: :redirect_stdout, err: :redirect_stderr}.transform_values { |name| options[name] }.compact.transform_values { |path| [path, "a"] }
        end

        # The method with which clients send more matchers than a URL holds.
        def admit_query
          methods = options[:supported_http_methods] || Puma::Const::SUPPORTED_HTTP_METHODS
          options[:supported_http_methods] = methods | ["QUERY"] unless methods == :any
        end

        def inherited
          number = @launcher.binder.inherited_fds.delete(PIPE)
          number && UNIXSocket.for_fd(number)
        end

        # Puma has one event for restarts of all kinds; the hook is for those in which the master becomes another program.
        def follow
          @launcher.config.configure do |_, file|
            file.before_restart { hand_on }
            file.before_worker_boot { @sidecar.abandon } if cluster?
          end
          # A cluster that ends waits for all its children.
          @launcher.events.after_stopped { @sidecar.tell_to_stop } if cluster?
          @launcher.events.register(:state) { |state| Relay.shutdown if ENDING.include?(state) && defined?(Relay) }
        end

        def hand_on
          ENV[Folder::VARIABLE] = @folder.path
          @launcher.binder.listeners << [PIPE, @sidecar.pipe]
        end
      end

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
