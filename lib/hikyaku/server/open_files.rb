# frozen_string_literal: true

module Hikyaku
  class Server
    # How many files, and so connections, this process may have open.
    module OpenFiles
      # Left for listeners, requests, logs and key sets.
      RESERVE = 256
      # Where the system says "no limit", what it really has.
      FALLBACK = 1_048_576
      private_constant :RESERVE, :FALLBACK

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
      # @return [Integer] subscribers for which there is room
      def for_subscribers(limit) = limit - [RESERVE, limit / 4].min

      def maximum
        File.read("/proc/sys/fs/nr_open").to_i
      rescue SystemCallError
        FALLBACK
      end
      private_class_method :maximum
    end
  end
end
