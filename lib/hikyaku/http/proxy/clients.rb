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
        MOST = 64
        IDENTIFYING = %w[authorization cookie].freeze
        private_constant :MOST, :IDENTIFYING

        # A client, its cache, and how many use it now.
        Entry = Struct.new(:client, :cache, :uses)
        private_constant :Entry

        # @param memory [Client::Memory] what is known of servers is no secret between users
        # @param cached [Boolean] whether answers are kept
        # @param most [Integer] that are kept when nobody uses them
        # @param options [Hash] see {Client#initialize}
        def initialize(memory, cached: true, most: MOST, **options)
          @memory = memory
          @cached = cached
          @most = most
          @options = options
          @lock = Mutex.new
          @entries = {}
        end

        # @param user [String, nil] of the proxy
        # @param headers [Array<Array(String, String)>] names in lower case
        # @return [String] whose requests these are: the same for the same user with the same credentials
        def self.credentials(user, headers)
          said = headers.select { |field| IDENTIFYING.include?(field.first) }
          Digest::SHA256.digest(Marshal.dump([user, said]))
        end

        # @param credentials [String]
        # @yieldparam client [Client] which is not closed meanwhile
        # @return what the block returns
        def use(credentials)
          entry = enter(credentials)
          begin
            yield entry.client
          ensure
            leave(entry)
          end
        end

        # See {Cache#invalidate}: what is stored with any of the credentials goes.
        #
        # @param answer [Hash] its arguments
        # @return [void]
        def invalidate(**answer)
          @lock.synchronize do
            @entries.each_value { |entry| entry.client.together { entry.cache.invalidate(**answer) } if entry.cache }
          end
        end

        # @return [Array<String>] of each server that was asked, why it is pipelined, or why not
        def explanations = @lock.synchronize { @entries.values }.flat_map { |entry| entry.client.explanations }.uniq

        # @return [Integer]
        def size = @lock.synchronize { @entries.size }

        # @return [void]
        def close
          @lock.synchronize { @entries.values.tap { @entries = {} } }.each { |entry| entry.client.close }
        end

        private

        def enter(credentials)
          entry, surplus = @lock.synchronize do
            found = @entries.delete(credentials) || begun
            found.uses += 1
            @entries[credentials] = found
            [found, shed]
          end
          surplus.each { |old| old.client.close }
          entry
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
