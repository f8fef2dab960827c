# frozen_string_literal: true

module Hikyaku
  class Server
    # How many files, and so connections, this process may have open.
    module OpenFiles
      # Left for listeners, requests, logs and key sets; with the engine in C for publishers and probes, which must get in when
      # there are as many subscribers as there may be.
      RESERVE = 256
      NATIVE_RESERVE = 64
      # Files of the process itself, and of connections that are just told that there is no room.
      OWN = 40
      # Where the system says "no limit", what it really has.
      FALLBACK = 1_048_576
      private_constant :RESERVE, :NATIVE_RESERVE, :OWN, :FALLBACK

      module_function

      # Raises the soft limit to the hard one.
      #
      # @return [Integer] the limit that holds
      def raise_limit
        soft, hard = Process.getrlimit(:NOFILE)
        hard = maximum if hard == Process::RLIM_INFINITY
        Process.setrlimit(:NOFILE, hard) if soft < hard
        [soft, hard].max
      rescue SystemCallError, NotImplementedError
        soft || 1024
      end

      # @param limit [Integer]
      # @param native [Boolean] whether the engine in C serves them
      # @return [Integer] subscribers for which there is room
      def for_subscribers(limit, native: false) = limit - [native ? NATIVE_RESERVE : RESERVE, limit / 4].min

      # @param limit [Integer]
      # @return [Integer] connections of all kinds, streams and requests, for which the engine in C has room
      def for_connections(limit) = limit - [OWN, limit / 8].min

      def maximum
        File.read("/proc/sys/fs/nr_open").to_i
      rescue SystemCallError
        FALLBACK
      end
      private_class_method :maximum
    end
  end
end
