# frozen_string_literal: true

# Run as a process of its own: publishes updates of one shape to a hub in Ruby, and prints by how many bytes the process has
# grown, how many of them the hub counts for its history, and how many updates that holds.
#
#     ruby history_filler.rb HISTORY UPDATES DATA SHARED OWN [private] [numbered] [stored FOLDER]

require "hikyaku/hub"

history, updates, data, shared, own = ARGV.shift(5).map(&:to_i)
folder = ARGV[ARGV.index("stored") + 1] if ARGV.include?("stored")
hub = Hikyaku::Hub.new(hub_url: "https://hub.example.com/.well-known/mercure", history: history, storage: folder && {folder: folder, level: :written})
number = 0
publish = lambda do |bytes|
  number += 1
  topics = Array.new(shared) { |i| "https://example.com/books/shared/#{i}" } + Array.new(own) { |i| "https://example.com/books/#{number}/#{i}" }
  hub.publish(Hikyaku::Hub::Update.new(topics: topics, data: "x" * bytes, private: ARGV.include?("private"), id: ("urn:update:#{number}" if ARGV.include?("numbered"))))
end
memory = -> { File.read("/proc/self/status")[/^VmRSS:\s+(\d+)/, 1].to_i * 1024 }

500.times { publish.call(10) }
before = memory.call
updates.times { publish.call(data) }
puts memory.call - before, hub.stats.values_at(:history_bytes, :history_updates)
