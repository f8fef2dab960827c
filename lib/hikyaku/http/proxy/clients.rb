# frozen_string_literal: true

require "digest"
require_relative "../cache"
require_relative "../client"

module Hikyaku
  module HTTP
    class Proxy
      # A client for each set of credentials, so that no two identities of a user ever share a connection, an answer on its way, or a cache.
      class Clients
        # The one that was used longest ago goes first, of those that nobody uses.
        MOST = 32
        # Of all together.
        MOST_CONNECTIONS = 128
        MOST_BYTES = 67_108_864
        # Each so many uses it is looked whether there are more.
        EACH = 16
        IDENTIFYING = %w[authorization cookie].freeze
        private_constant :MOST, :MOST_CONNECTIONS, :MOST_BYTES, :EACH, :IDENTIFYING

        # A client, its cache, and how many use it now.
        Entry = Struct.new(:client, :cache, :uses)
        private_constant :Entry

        def initialize(memory, cached: true, most: MOST, most_connections: MOST_CONNECTIONS, most_bytes: MOST_BYTES, **options)
          @memory = memory
          @cached = cached
          @most = most
          @most_connections = most_connections
          @most_bytes = most_bytes
          @entered = 0
          @options = options
          @lock = Mutex.new
          @entries = {}
        end

        def self.credentials(user, headers)
          said = headers.select { |field| IDENTIFYING.include?(field.first) }
          Digest::SHA256.digest(Marshal.dump([user, said]))
        end

        def use(credentials, origin = nil)
          entry = enter(credentials, origin)
          begin
            yield entry.client
          ensure
            leave(entry)
          end
        end

        # See {Cache#invalidate}: what is stored with any of the credentials goes.
        def invalidate(**answer)
          @lock.synchronize do
            @entries.each_value { |entry| entry.client.together { entry.cache.invalidate(**answer) } if entry.cache }
          end
        end

        # Closes all connections on which nothing is under way.
        def rest = entries.each { |entry| entry.client.rest }

        def connections = entries.sum { |entry| entry.client.connections }

        def bytes = entries.sum { |entry| entry.cache ? entry.cache.bytes : 0 }

        def explanations = @lock.synchronize { @entries.values }.flat_map { |entry| entry.client.explanations }.uniq

        def size = @lock.synchronize { @entries.size }

        def close
          @lock.synchronize { @entries.values.tap { @entries = {} } }.each { |entry| entry.client.close }
        end

        private

        def enter(credentials, origin)
          entry, is_new, surplus = @lock.synchronize do
            known = @entries.delete(credentials)
            found = @entries[credentials] = known || begun
            found.uses += 1
            [found, known.nil?, shed]
          end
          surplus.each { |old| old.client.close }
          tidy(entry, origin, is_new)
          entry
        end

        def entries = @lock.synchronize { @entries.values }

        # A cookie that changes makes another set of credentials, and the one before it is of no use any more.
        def tidy(entry, origin, is_new)
          return unless is_new || ((@entered += 1) % EACH).zero?
          others = entries - [entry]
          others.each { |other| other.client.rest(origin) } if is_new && origin
          [*others, entry].each { |each| (connections > @most_connections) ? each.client.rest : break }
          others.each { |other| (bytes > @most_bytes) ? other.client.together { other.cache.clear } : break }
        end

        def leave(entry)
          surplus = @lock.synchronize do
            entry.uses -= 1
            shed
          end
          surplus.each { |old| old.client.close }
        end

        def begun
          cache = @cached ? Cache.new : nil
          Entry.new(Client.new(memory: @memory, cache: cache, **@options), cache, 0)
        end

        # One that is in use beyond the number goes when it is not any more.
        def shed
          idle = @entries.select { |_, entry| entry.uses.zero? }.first([@entries.size - @most, 0].max)
          idle.map { |credentials, _| @entries.delete(credentials) }
        end
      end
    end
  end
end
