# frozen_string_literal: true

module Hikyaku
  class Web
    # Decisions that were taken lately, by the values that decided: whoever sends the same ones shares the grant. The
    # values are compared whole; only what was granted is remembered, never a refusal. Whether the token behind it is
    # still good is asked before, each time.
    #
    # Bounded in bytes, in two generations like Hub::Topics: a look-up is one or two hash look-ups.
    class Grants
      # What an entry costs beside its texts.
      OVERHEAD = 600
      private_constant :OVERHEAD

      # @param max_bytes [Integer] what the remembered grants may take, estimated
      def initialize(max_bytes: 4_194_304)
        @max_bytes_of_generation = max_bytes / 2
        @young = {}
        @old = {}
        @bytes = 0
        @mutex = Mutex.new
      end

      # @param access [Access, nil] the token's verdict, which stands for the token
      # @param parameters [Array<Array(String, String)>] the matcher parameters, in order
      # @yieldreturn [Hub::Grant] the decision, when it has to be taken
      # @return [Hub::Grant]
      def fetch(access, parameters)
        key = [access.object_id, parameters]
        @mutex.synchronize do
          found = @young[key] || @old[key]
          return found.last if found && found.first.equal?(access)
        end
        grant = yield
        remember(key, [access, grant])
        grant
      end

      # Forgets the decisions about a subject.
      #
      # @param subject [String]
      # @return [void]
      def forget(subject)
        @mutex.synchronize do
          [@young, @old].each { |grants| grants.delete_if { |_, (_, grant)| grant.subject == subject } }
        end
      end

      # @return [Integer] how many are remembered
      def size = @mutex.synchronize { (@young.keys | @old.keys).size }

      # @return [String] without tokens
      def inspect = "#<#{self.class.name}>"

      private

      def remember(key, entry)
        bytes = OVERHEAD + key.last.sum { |name, value| name.bytesize + value.bytesize }
        @mutex.synchronize do
          if @bytes + bytes > @max_bytes_of_generation
            @old = @young
            @young = {}
            @bytes = 0
          end
          @bytes += bytes
          @young[key] = entry
        end
      end
    end
  end
end
