# frozen_string_literal: true

module Hikyaku
  class Railtie < ::Rails::Railtie
    # Takes the hub along when the server becomes a daemon. `rails server --daemon` and `rackup --daemonize` load the application first; the
    # process that serves is a child of that one, and has none of its threads. Process.daemon forks without Process._fork, so that
    # ActiveSupport::ForkTracker does not see it.
    module Daemon
      # Put before Process.daemon.
      module Moving
        def daemon(*)
          Railtie.mount.move { super }.tap { OutboxGlue.go_on }
        end
      end

      module_function

      def follow = Process.singleton_class.prepend(Moving)
    end
  end
end
