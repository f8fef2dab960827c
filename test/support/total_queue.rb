# frozen_string_literal: true

# Checks that a queue loses nothing: what goes in comes out. Every message has an id of its own; senders and receivers in any
# threads say what they did and what they were told.
#
#     attempt(id) ──► acknowledge(id)      receive(id, message) ──► free(id, message)
#
#     lost          acknowledged, and received by nobody
#     unexpected    received, though nobody has sent it
#     taken_twice   received as two messages: the broker has taken it twice
#     returned      there again after its receiver was told that it is done with: the next one was told so, too
#     repeated      received more than once: allowed, and good to know
#     recovered     received, though its sender was told nothing: allowed, too
class TotalQueue
  # What became of everything; each a list of ids.
  Result = Struct.new(:attempted, :acknowledged, :received, :lost, :unexpected, :taken_twice, :returned, :repeated, :recovered, keyword_init: true) do
    # @return [Boolean] the queue has kept its promise
    def kept? = [lost, unexpected, taken_twice, returned].all?(&:empty?)

    def to_s = to_h.map { |name, ids| "#{ids.size} #{name}#{" (#{ids.first(5).join(", ")})" if ids.any? && !%i[attempted acknowledged received].include?(name)}" }.join("; ")
  end

  def initialize
    @lock = Mutex.new
    @attempted = {}
    @acknowledged = {}
    @received = Hash.new { |hash, id| hash[id] = [] }
    @freed = {}
    @returned = {}
  end

  # Before it is sent.
  def attempt(id)
    @lock.synchronize do
      raise ArgumentError, "#{id} was sent before" if @attempted.key?(id)
      @attempted[id] = true
    end
    id
  end

  # Its sender was told that it was taken.
  def acknowledge(id) = @lock.synchronize { @acknowledged[id] = true }

  # @param message [Object] what the broker calls it
  def receive(id, message) = @lock.synchronize { @received[id] << message }

  # Its receiver was told that it is done with. Who received it before, over a connection that was cut, may come to say so only now: what
  # counts is that nobody else is told the same.
  def free(id, message)
    @lock.synchronize { @freed.key?([id, message]) ? @returned[id] = true : @freed[[id, message]] = true }
  end

  # @return [Integer] how many that were acknowledged nobody has received yet
  def missing = @lock.synchronize { @acknowledged.count { |id, _| !@received.key?(id) } }

  # @return [Integer]
  def acknowledged = @lock.synchronize { @acknowledged.size }

  # @return [Result]
  def result
    @lock.synchronize do
      got = @received.keys
      Result.new(attempted: @attempted.keys, acknowledged: @acknowledged.keys, received: got, lost: @acknowledged.keys - got, unexpected: got - @attempted.keys,
        taken_twice: ids { |messages| messages.uniq.size > 1 }, returned: @returned.keys, repeated: ids { |messages| messages.uniq.size < messages.size },
        recovered: (got & @attempted.keys) - @acknowledged.keys)
    end
  end

  private

  def ids(&which) = @received.select { |_, messages| which.call(messages) }.keys
end
