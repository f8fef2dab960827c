# frozen_string_literal: true

require_relative "access_link"
require_relative "route"
require_relative "origin_pool"

module Hikyaku
  module HTTP
    class Client
      # The servers that were asked: not more than a client needs to know at a time.
      class Origins
        MOST = 500
        private_constant :MOST

        def initialize(settings, driver, memory, clock:, most: MOST)
          @settings = settings
          @driver = driver
          @memory = memory
          @clock = clock
          @most = most
          @line = AccessLink.new
          @servers = {}
        end

        def [](origin) = @servers[origin] || add(origin)

        def to_a = @servers.values

        def size = @servers.size

        private

        def add(origin)
          route = Route.to(origin, proxy: @settings.proxy, unix_socket: @settings.unix_socket)
          shed if @servers.size >= @most
          server = OriginPool.new(route, @settings, memory: @memory, wake: @driver.method(:wake), clock: @clock, line: @line)
          @driver.servers << server
          @servers[origin] = server
        end

        # The one that was idle for longest.
        def shed
          origin, server = @servers.select { |_, one| one.idle? }.min_by { |_, one| one.used_at }
          return unless server
          server.close
          @servers.delete(origin)
          @driver.servers.delete(server)
        end
      end
    end
  end
end
