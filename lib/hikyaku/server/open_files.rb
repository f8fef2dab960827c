# frozen_string_literal: true

module Hikyaku
  class Server
    # How many files, and so connections, this process may have open, and who gets how many.
    module OpenFiles
      # Left for listeners, requests, logs and key sets; with the engine in C for publishers and probes, which must get in when
      # there are as many subscribers as there may be.
      RESERVE = 256
      NATIVE_RESERVE = 64
      # Files of the process itself, and of connections that are just told that there is no room.
      OWN = 40
      # What a broker's process has open beside its clients: journals with their locks, segments, spares and checkpoints,
      # listeners, the loop, figures over HTTP, key sets, and connections that are being closed.
      BROKER_RESERVE = 96
      # Of these, what a broker adds to a hub's own.
      JOURNALS = 32
      # Where the system says "no limit", what it really has.
      FALLBACK = 1_048_576
      # The most that the setting max_connections takes: containers may have a limit of a billion files.
      MOST = 10_000_000
      private_constant :RESERVE, :NATIVE_RESERVE, :OWN, :BROKER_RESERVE, :JOURNALS, :FALLBACK, :MOST

      module_function

      # Raises the soft limit to the hard one.
      def raise_limit
        soft, hard = Process.getrlimit(:NOFILE)
        hard = maximum if hard == Process::RLIM_INFINITY
        Process.setrlimit(:NOFILE, hard) if soft < hard
        [soft, hard].max
      rescue SystemCallError, NotImplementedError
        soft || 1024
      end

      def for_subscribers(limit, native: false) = [limit - [native ? NATIVE_RESERVE : RESERVE, limit / 4].min, MOST].min

      def for_connections(limit) = limit - [OWN, limit / 8].min

      def for_broker(limit, wanted, used: self.used) = [wanted, limit - [BROKER_RESERVE + used, limit * 3 / 4].min].min

      # Of a broker in the process of a hub: the hub keeps room for its subscribers, but a quarter is always the broker's.
      def for_both(limit, wanted, subscribers: nil, used: self.used)
        most = for_broker(limit, limit, used: used)
        share = [most - (subscribers || most / 2), most / 4].max
        clients = [wanted, share].min
        [clients, limit - clients - [JOURNALS, limit / 8].min]
      end

      def used
        Dir.children("/proc/self/fd").size
      rescue SystemCallError
        0
      end

      def maximum
        File.read("/proc/sys/fs/nr_open").to_i
      rescue SystemCallError
        FALLBACK
      end
      private_class_method :maximum
    end
  end
end
