# frozen_string_literal: true

require "fileutils"
require "json"
require "rbconfig"
require "socket"
require_relative "../../support/clock"
require_relative "../../error"

module Hikyaku
  class Server
    class Sidecar
      # The hub's process did not start; the message says why.
      class Failed < StandardError
        include Error
      end

      # One life of the hub's process, seen from the one that started it.
      #
      # Between the two is a pair of sockets, of which each holds one end and nobody else any: its end of file says that the other
      # process has gone, however that happened. (Whose child has ended cannot be asked: Puma's cluster takes the
      # answer for any child.) The settings go over it, so that they stand in no list of processes.
      #
      #     here                     there (Server::Sidecar::ParentPipe)
      #       settings, a line of JSON ──►
      #       ◄── "ready", "ready handover" where it takes connections over, or "failed SENTENCE"
      #       "stop" ──►
      class HubProcess
        include Support::Clock

        COMMAND = [RbConfig.ruby, File.expand_path("../../../../exe/hikyaku", __dir__), "serve"].freeze
        # Whose number the new process finds its end by.
        VARIABLE = "HIKYAKU_PARENT_PIPE"
        # All settings come the other way.
        SETTINGS = /\A(?:HIKYAKU|MERCURE)_(?!DEBUG\z)/
        TAKES_OVER = "ready handover"
        READY_SECONDS = 30
        MAX_LINE_BYTES = 65_536
        # For the kernel to tell of a process that has closed its files that it has ended.
        REAP_SECONDS = 2
        private_constant :COMMAND, :VARIABLE, :SETTINGS, :TAKES_OVER, :READY_SECONDS, :MAX_LINE_BYTES, :REAP_SECONDS

        class << self
          # Starts a process; it is not ready yet.
          def start(folder, settings, output: {})
            mine, theirs = UNIXSocket.pair.tap { |sockets| yield sockets if block_given? }
            pid = spawn(folder, theirs, output)
            theirs.close
            new(pid, mine).tap { |process| process.tell(settings, folder) }
          rescue SystemCallError => error
            mine&.close
            raise Failed, "the hub's process cannot be started: #{error.message}"
          ensure
            theirs&.close
          end

          private

          # A group of its own: what a terminal says to Puma's, it says to Puma, which then ends the hub when its time has come.
          def spawn(folder, socket, output)
            Process.spawn(environment(socket), *command, "--listen", "unix:#{folder.socket}",
              socket => socket, :in => File::NULL, :pgroup => true, :close_others => true, **output)
          end

          # Puma without its bundle (prune_bundler) has gems that are not on everybody's path.
          def command = ENV["PUMA_BUNDLER_PRUNED"] ? [COMMAND.first, "-rbundler/setup", *COMMAND.drop(1)] : COMMAND

          def environment(socket)
            ENV.keys.grep(SETTINGS).to_h { |name| [name, nil] }.merge(VARIABLE => socket.fileno.to_s)
          end
        end

        attr_reader :pid, :pipe

        def initialize(pid, pipe)
          @pid = pid
          @pipe = pipe
          @pipe.close_on_exec = true
        end

        def tell(settings, folder)
          @pipe.write(JSON.generate("settings" => settings, "handover" => folder.handover, "folder" => (folder.path if folder.temporary?)), "\n")
        rescue SystemCallError
          nil # it has ended, and is asked next
        end

        # Waits until the hub answers requests.
        def await_ready
          line = read_line
          return line == TAKES_OVER if [TAKES_OVER, "ready"].include?(line)
          kill
          ended = reap
          raise Failed, line.delete_prefix("failed ") if line&.start_with?("failed ")
          raise Failed, line ? "the hub's process said what nobody understands" : "the hub's process has ended (#{ended}) before it was ready"
        end

        def alive?
          return false if @pipe.closed?
          !@pipe.wait_readable(0)
        end

        # Asks it to stop gracefully. Does not wait; may be called from a signal's handler.
        def tell_to_stop
          @pipe.write_nonblock("stop\n", exception: false)
        rescue IOError, SystemCallError
          nil
        end

        # Ends it at once, if it is there.
        def kill
          Process.kill(:KILL, @pid) unless @reaped
        rescue SystemCallError
          nil
        end

        # Takes the process, which has ended, off the system's list.
        def reap
          close
          deadline = now + REAP_SECONDS
          until (status = Process.wait2(@pid, Process::WNOHANG)&.last)
            kill if now > deadline
            sleep 0.01
          end
          describe(status)
        rescue Errno::ECHILD
          "in a way that is not known" # Puma's cluster was told
        ensure
          @reaped = true
        end

        # Closes this side: the process takes it for the end of whoever started it, if no other has a copy.
        def close = @pipe.close

        private

        def read_line
          deadline = now + READY_SECONDS
          line = +""
          until line.end_with?("\n")
            wait = deadline - now
            raise Failed, "the hub's process was not ready in #{READY_SECONDS} seconds" unless wait.positive? && @pipe.wait_readable(wait)
            line << @pipe.readpartial(MAX_LINE_BYTES)
          end
          line.force_encoding(Encoding::UTF_8).scrub.chomp
        rescue EOFError, SystemCallError
          nil
        rescue Failed
          kill
          reap
          raise
        end

        def describe(status)
          status.signaled? ? "by the signal #{Signal.signame(status.termsig)}" : "with exit code #{status.exitstatus}"
        end
      end

      # The other end of Sidecar::HubProcess: the way between this process and the one that started it to be its hub. Settings
      # come over it; the end of the other process, however it came, is the end of this one.
      class ParentPipe
        VARIABLE = "HIKYAKU_PARENT_PIPE"
        private_constant :VARIABLE

        def self.inherited(env)
          number = env[VARIABLE].to_s[/\A\d{1,9}\z/] or return
          env.delete(VARIABLE)
          new(UNIXSocket.for_fd(number.to_i))
        rescue SystemCallError
          nil
        end

        attr_reader :settings, :handover

        def initialize(socket)
          @socket = socket
          @socket.close_on_exec = true
          told = JSON.parse(@socket.gets || exit!(1))
          @settings = told.fetch("settings").transform_keys(&:to_sym)
          @handover, @folder = told.values_at("handover", "folder")
        end

        # Says that the hub answers.
        def ready(handover:, &stop)
          @socket.write("ready#{" handover" if handover}\n")
        rescue SystemCallError
          nil # nobody is there any more: the end of file says so too
        ensure
          Thread.new { watch(&stop) }.name = "hikyaku-parent-pipe"
        end

        # Says why there will be no hub.
        def failed(message)
          @socket.write("failed #{message.tr("\n", " ")}\n")
        rescue SystemCallError
          nil
        end

        # Clears up when the hub has stopped: what nobody else is there to clear up.
        def close
          FileUtils.rm_rf(@folder) if @alone && @folder
        end

        private

        def watch
          # A line is "stop".
          @alone = true unless @socket.gets
        rescue SystemCallError, IOError
          @alone = true
        ensure
          yield
        end
      end
    end
  end
end
