# frozen_string_literal: true

require "fileutils"
require "json"
require "socket"

module Hikyaku
  class Server
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

      attr_reader :settings
      attr_reader :handover

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
