# frozen_string_literal: true

require "digest"
require_relative "../client"

module Hikyaku
  module HTTP
    class Proxy
      # A client for each set of credentials, so that no two users, and no two identities of one, ever share a connection, an answer on its way, or a cache.
      class Clients
        # The one that was used longest ago goes first.
        MOST = 64
        IDENTIFYING = %w[authorization cookie].freeze
        private_constant :MOST, :IDENTIFYING

        # @param memory [Client::Memory] what is known of servers is no secret between users
        # @param options [Hash] see {Client#initialize}
        def initialize(memory, **options)
          @memory = memory
          @options = options
          @lock = Mutex.new
          @clients = {}
        end

        # @param user [String, nil] of the proxy
        # @param headers [Array<Array(String, String)>] names in lower case
        # @return [String] whose requests these are: the same for the same user with the same credentials
        def credentials(user, headers)
          said = headers.select { |field| IDENTIFYING.include?(field.first) }
          Digest::SHA256.digest(Marshal.dump([user, said]))
        end

        # @param credentials [String]
        # @return [Client]
        def for(credentials)
          old = nil
          client = @lock.synchronize do
            found = @clients.delete(credentials) || Client.new(memory: @memory, **@options)
            _, old = @clients.shift if @clients.size >= MOST
            @clients[credentials] = found
          end
          old&.close
          client
        end

        # @return [Array<String>] of each server that was asked, why it is pipelined, or why not
        def explanations = @lock.synchronize { @clients.values }.flat_map(&:explanations).uniq

        # @return [void]
        def close
          @lock.synchronize { @clients.values.tap { @clients = {} } }.each(&:close)
        end
      end
    end
  end
end
