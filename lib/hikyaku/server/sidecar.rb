# frozen_string_literal: true

require "securerandom"
require_relative "../support/clock"
require_relative "sidecar/folder"
require_relative "sidecar/hub_process"
require_relative "sidecar/settings"

module Hikyaku
  class Server
    # The hub as a process beside Puma's, which lives as long as Puma's master does, whatever becomes of the workers: they are
    # restarted one by one, or all, and no subscriber notices. `plugin :hikyaku` runs it.
    #
    #     Puma's master ── Sidecar ── HubProcess ─── pipe ──── the hub's process
    #         │ fork                                                  │ hub.sock     requests (Relay, Publisher)
    #       workers ── Relay ───────────────────────────────────────►│ handover.sock   connections (Handover)
    #
    # The process is started again whenever it ends, and stopped when Puma ends, even when Puma could not say so. When Puma's
    # master becomes another program (a hot restart) it stays, and the new one keeps it, unless its settings have changed.
    class Sidecar
      include Support::Clock

      # Seconds before the process is started again: at first, and at most.
      BACKOFF = [0.1, 5].freeze
      # Seconds after which a process that has ended was not one that cannot live.
      SETTLED_SECONDS = 10
      # For a graceful stop, which the hub's process itself limits to less.
      STOP_SECONDS = 15
      # Whose tokens workers show.
      ISSUER = "hikyaku:sidecar"
      private_constant :BACKOFF, :SETTLED_SECONDS, :STOP_SECONDS, :ISSUER

      attr_reader :folder

      # @yieldraise [ConfigError, Failed]
      def initialize(folder, output: {}, log: ->(_sentence) {}, &plan)
        @folder = folder
        @output = output
        @log = log
        @planner = plan
        @stopping = false
        @wake_reader, @wake_writer = IO.pipe
        @pipes = []
      end

      # Starts the hub's process, waits until it answers, and watches over it.
      def start
        @key = SecureRandom.urlsafe_base64(32)
        @process = launch
        @plan.doubts.each { |doubt| @log.call(doubt) }
        watch
      end

      # Takes a process over that was there before: when its settings are still right, it stays.
      def keep(pipe, later: false)
        about = @folder.about
        @key = about.fetch(:key)
        @process = HubProcess.new(about.fetch(:pid), pipe)
        @pipes = [pipe]
        unless later
          @plan = @planner.call
          suit
        end
        watch
      end

      # Says that the end has come. Does not wait; may be called from a signal's handler.
      def tell_to_stop
        @stopping = true
        @process&.tell_to_stop
        @wake_writer.write_nonblock(".")
      rescue IOError, SystemCallError
        nil
      end

      # Stops the hub, gracefully as far as it lets itself be, and takes the folder away.
      def stop
        tell_to_stop
        @watcher&.join(STOP_SECONDS + 5)
        @process&.close
        @folder.remove
      end

      # Lets go of the hub, in a process that has a copy of what belongs to Puma's master.
      def abandon
        [*@pipes, @wake_reader, @wake_writer].each { |io| io.close unless io.closed? }
      end

      def pipe = @process.pipe

      def pid = @process.pid

      def inspect = "#<#{self.class.name} #{@folder.path} #{@process&.pid}>"

      private

      def launch
        @plan ||= @planner.call
        @folder.make_again
        process = HubProcess.start(@folder, settings, output: @output) { |sockets| @pipes = sockets }
        handover = process.await_ready
        @launched = now
        @folder.tell({**@plan.about, issuer: ISSUER, key: @key, pid: process.pid, digest: @plan.digest, handover: handover})
        @folder.hold
        process
      end

      # With the issuer of the workers' tokens.
      def settings
        @plan.settings.merge("issuers" => [*@plan.settings["issuers"], {"issuer" => ISSUER, "publisher_key" => @key}])
      end

      def watch
        @watcher = Thread.new { live }
        @watcher.name = "hikyaku-sidecar"
        self
      end

      def live
        compare unless @plan
        until ended?
          @log.call("the hub's process #{pid} has ended #{@process.reap}; another one is started, to which its subscribers come back")
          revive
        end
        finish
      end

      # Waits for the end of the process, or of Puma.
      def ended?
        IO.select([pipe, @wake_reader]) unless pipe.closed?
        @stopping
      end

      # With longer and longer pauses, as often as it takes.
      def revive
        first, most = BACKOFF
        @pause = first if @pause.nil? || @launched.nil? || now - @launched > SETTLED_SECONDS
        until @wake_reader.wait_readable(@pause)
          begin
            @pause = [2 * @pause, most].min
            return @process = launch
          rescue Error => error
            @log.call("the hub's process could not be started: #{error.message}")
          end
        end
      end

      # Whether the hub that was kept is the one that there is to be.
      def compare
        @plan = @planner.call
        suit
      rescue Error => error
        @log.call("the hub's process stays as it was: #{error.message}")
      end

      def suit
        return if @process.alive? && @folder.about[:digest] == @plan.digest
        @log.call("the hub's settings have changed: another process takes its place") if @process.alive?
        finish
        @process = launch
      end

      def finish
        return if pipe.closed?
        @process.tell_to_stop
        @process.kill unless pipe.wait_readable(STOP_SECONDS)
        @process.reap
      end
    end
  end
end
