# frozen_string_literal: true

# A pool of workers that survives its workers being killed: no message is lost, and the one that kills whoever takes it
# ends among the dead letters, and takes no other with it.
#
#     bundle exec ruby examples/worker_pool.rb
#
# The pool forks workers and replaces those that die. While they work, an enemy kills one of them now and then, without
# notice. One message of the 100 is deadly by itself.

require_relative "a_broker"

MESSAGES = 100
WORKERS = 3
POOL = Process.pid
$stdout.sync = true

# What the process was told to do by a signal. A worker has this from the pool, as everything else: there is no moment at which
# a signal finds nobody.
TOLD = []
%w[INT TERM].each { |name| Signal.trap(name) { TOLD << name } }

# One process. What it has done it writes into a file, as others write into a database.
def work(address, diary)
  Hikyaku::Broker::Client.open(address) do |client|
    client.subscribe("photos", credit: 5) do |delivery|
      Process.kill(:KILL, Process.pid) if delivery.payload == "deadly"
      sleep 0.04
      # At least once: who was killed between its work and its word has done it twice. The id says that it is the same.
      File.write(diary, "#{delivery.id} #{delivery.payload}\n", mode: "a")
    end
    # A pool that was killed tells nobody. Whoever leaves the block finishes what it works on, and gives back the rest.
    sleep 0.05 until TOLD.any? || Process.ppid != POOL
  end
end

# Processes that are replaced when they die.
class Pool
  attr_reader :killed

  def initialize(size, &work)
    @work = work
    @killed = 0
    @pids = Array.new(size) { start }
  end

  # Replaces who has died.
  def look_after
    gone = @pids.select { |pid| Process.wait(pid, Process::WNOHANG) }
    @killed += gone.size
    @pids = @pids - gone + Array.new(gone.size) { start }
  end

  def attack = Process.kill(:KILL, @pids.sample)

  def stop
    @pids.each { |pid| Process.kill(:TERM, pid) }.each { |pid| Process.wait(pid) }
  end

  private

  def start = fork { @work.call }
end

ABroker.run do |address|
  Dir.mktmpdir("hikyaku-workers") do |folder|
    diary = "#{folder}/diary"
    client = Hikyaku::Broker::Client.open(address)
    photos = Array.new(MESSAGES - 1) { |index| "photo #{index}" }.insert(MESSAGES / 2, "deadly")
    # Acknowledged as synced: on the disk.
    client.send_batch("photos", photos, level: :synced)

    pool = Pool.new(WORKERS) { work(address, diary) }
    begin
      puts "#{WORKERS} workers are at work."
      rounds = 0
      until TOLD.any?
        figures = client.queues("photos").first
        break if figures.values_at("ready", "delayed", "out").sum.zero?
        sleep 0.05
        pool.attack if (rounds += 1) <= 50 && (rounds % 5).zero?
        pool.look_after
      end
    ensure
      pool.stop
    end

    # Who stops the pool at once finds it has written nothing.
    done = File.exist?(diary) ? File.readlines(diary, chomp: true) : []
    dead = client.dead("photos").map { |letter| [letter["payload"].unpack1("m"), letter["crashes"]] }
    puts "#{pool.killed} workers were killed."
    puts "#{done.uniq.size} of #{MESSAGES} messages are done, #{done.size - done.uniq.size} of them twice."
    dead.each { |payload, crashes| puts "Dead letter: #{payload}, after #{crashes} crashes." }
    client.close
  end
end

exit 128 + Signal.list[TOLD.first] if TOLD.any?
