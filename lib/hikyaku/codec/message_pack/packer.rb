# frozen_string_literal: true

require_relative "../errors"
require_relative "../format"
require_relative "../plain"
require_relative "timestamp"

module Hikyaku
  module Codec
    class MessagePack < Format
      # Writes with the gem msgpack. Its factory is ours alone: what an application registers for itself is not sent to strangers, and what we
      # register is not seen by it.
      module Packer
        # Before it, buffers were given away twice (1.8.2) and maps could overflow (1.8.3).
        LEAST = [1, 8, 3].freeze
        # The type of a timestamp.
        TIMESTAMP = -1
        # Packers that are kept, one for each thread that writes at the same time.
        KEPT = 16
        MUTEX = Mutex.new
        private_constant :LEAST, :TIMESTAMP, :KEPT, :MUTEX

        class << self
          def available? = !pool.nil?

          def dump(object)
            pack(Plain.for_message_pack(object))
          end

          def there!
            pool or raise Unavailable, "MessagePack needs the gem msgpack: add `gem \"msgpack\", \">= #{LEAST.join(".")}\"` to the Gemfile"
          end

          private

          def pool
            MUTEX.synchronize { @pool = make unless defined?(@pool) }
            @pool
          end

          def pack(plain)
            (@pool || there!).dump(plain)
          rescue RangeError
            raise Unrepresentable, "this cannot be represented: a moment in it is further away than MessagePack can say"
          end

          def make
            require "msgpack"
            return if (::MessagePack::VERSION.split(".").map(&:to_i) <=> LEAST).negative?
            factory = ::MessagePack::Factory.new
            factory.register_type(TIMESTAMP, ::Time, packer: Timestamp.method(:bytes), unpacker: nil)
            factory.freeze.pool(KEPT)
          rescue LoadError
            nil
          end
        end
      end
    end
  end
end
