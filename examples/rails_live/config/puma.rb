# frozen_string_literal: true

threads 3, 5
port ENV.fetch("PORT", 3000)
workers ENV.fetch("WEB_CONCURRENCY", 0)
preload_app! false # so that USR1 restarts the workers one by one

# With workers, the hub is a process beside them; without, it is in this one.
plugin :hikyaku if ENV["WEB_CONCURRENCY"]
