# frozen_string_literal: true

require "digest"
require_relative "../cache"
require_relative "../client"

module Hikyaku
  module HTTP
    class Proxy
      # A client for each set of credentials, so that two identities of a user share no connection, no response under way, and no cache.
      class ClientPool
        # The least recently used client goes first, of those that are idle.
        MAX = 32
        # Of all clients together.
        MAX_CONNECTIONS = 128
        MAX_BYTES = 67_108_864
        # The pool checks both limits once in so many uses.
        CHECK_INTERVAL = 16
        IDENTIFYING = %w[authorization cookie].freeze
        private_constant :MAX, :MAX_CONNECTIONS, :MAX_BYTES, :CHECK_INTERVAL, :IDENTIFYING

        # `uses` counts the running uses of the client.
        Entry = Struct.new(:client, :cache, :uses)
        private_constant :Entry

        def initialize(memory, cached: true, max: MAX, max_connections: MAX_CONNECTIONS, max_bytes: MAX_BYTES, **options)
          @memory = memory
          @cached = cached
          @max = max
          @max_connections = max_connections
          @max_bytes = max_bytes
          @uses = 0
          @options = options
          @lock = Mutex.new
          @entries = {}
        end

        def self.credentials(user, headers)
          Digest::SHA256.digest(Marshal.dump([user, headers.select { |field| IDENTIFYING.include?(field.first) }]))
        end

        def use(credentials, origin = nil)
          entry = acquire(credentials, origin)
          begin
            yield entry.client
          ensure
            release(entry)
          end
        end

        # See {Cache#invalidate}, for all credentials.
        def invalidate(**answer)
          @lock.synchronize do
            @entries.each_value { |entry| entry.client.together { entry.cache.invalidate(**answer) } if entry.cache }
          end
        end

        # Closes idle connections to servers.
        def close_idle = entries.each { |entry| entry.client.rest }

        def connections = entries.sum { |entry| entry.client.connections }

        def bytes = entries.sum { |entry| entry.cache ? entry.cache.bytes : 0 }

        def explanations = @lock.synchronize { @entries.values }.flat_map { |entry| entry.client.explanations }.uniq

        def size = @lock.synchronize { @entries.size }

        def close
          @lock.synchronize { @entries.values.tap { @entries = {} } }.each { |entry| entry.client.close }
        end

        private

        def acquire(credentials, origin)
          entry, is_new, surplus = @lock.synchronize do
            known = @entries.delete(credentials)
            found = @entries[credentials] = known || build
            found.uses += 1
            [found, known.nil?, evict]
          end
          surplus.each { |old| old.client.close }
          enforce_limits(entry, origin, is_new)
          entry
        end

        def entries = @lock.synchronize { @entries.values }

        # After a change of cookies, the former credentials and their connections are useless.
        def enforce_limits(entry, origin, is_new)
          return unless is_new || ((@uses += 1) % CHECK_INTERVAL).zero?
          others = entries - [entry]
          others.each { |other| other.client.rest(origin) } if is_new && origin
          [*others, entry].each { |each| (connections > @max_connections) ? each.client.rest : break }
          others.each { |other| (bytes > @max_bytes) ? other.client.together { other.cache.clear } : break }
        end

        def release(entry)
          surplus = @lock.synchronize do
            entry.uses -= 1
            evict
          end
          surplus.each { |old| old.client.close }
        end

        def build
          cache = @cached ? Cache.new : nil
          Entry.new(Client.new(memory: @memory, cache: cache, **@options), cache, 0)
        end

        # A client in use above the limit goes when it is idle.
        def evict
          idle = @entries.select { |_, entry| entry.uses.zero? }.first([@entries.size - @max, 0].max)
          idle.map { |credentials, _| @entries.delete(credentials) }
        end
      end
    end
  end
end
