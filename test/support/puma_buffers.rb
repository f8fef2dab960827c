# frozen_string_literal: true

require "puma"
require "puma/client"

# Puma 8.0.2 loses the beginning of an answer when a thread that has given a connection to the reactor is held up
# before it empties the connection's buffer (Server#process_client, `ensure`): on a busy machine once in some ten thousand
# requests. Tests of a hub in Puma are not tests of that, so a thread has a buffer of its own here.
module PumaBuffers
  def io_buffer = Thread.current[:puma_answer] ||= Puma::IOBuffer.new
end
Puma::Client.prepend(PumaBuffers)
