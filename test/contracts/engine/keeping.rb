# frozen_string_literal: true

require "tmpdir"

# What an engine keeps over a restart, for those that have storage.
module KeepingContract
  PARTS = []
  def self.tests(&block) = PARTS << block
  def self.included(base) = PARTS.each { |part| base.class_eval(&part) }

  def with_storage(**options)
    Dir.mktmpdir("storage") do |folder|
      @storage = {folder: folder, level: :written}.merge(options)
      yield folder
    ensure
      @engine.abandon_storage
    end
  end

  # Another process, after the one before has ended, or died.
  def restart(die: false, **options)
    die ? @engine.abandon_storage : @engine.close_storage
    @engine = make_engine(storage: @storage, **options)
  end

  tests do
    %i[written synced].each do |level|
      test "what was published at level #{level} is there after a crash, with its ids, for whoever comes back" do
        with_storage(level: level) do
          @engine = make_engine(storage: @storage)
          seen = publish("/a", "seen")
          publish(["/b", "/a"], "missed\nlines", type: "news", retry_after: 5000)
          publish("/a", "own", id: "urn:own")
          publish("/a", "secret", private: true)
          @engine.await(@engine.ticket) if @engine.ticket
          before = subscribe(exact("/a"), reads: ["/a"], last_event_id: "earliest").then { |reader| received(reader) && reader.connection.received }
          restart(die: true)
          reader = subscribe(exact("/a"), last_event_id: seen)
          assert_equal seen, reader.last_event_id
          assert_equal ["missed\nlines", "own"], received(reader)
          assert_equal ["secret"], received(subscribe(exact("/a"), reads: ["/a"], last_event_id: "urn:own"))
          after = subscribe(exact("/a"), reads: ["/a"], last_event_id: "earliest").then { |again| received(again) && again.connection.received }
          assert_equal before, after
        end
      end
    end

    test "positions go on behind a restart: no id is made twice, and the newest is known though nothing was published since" do
      with_storage do
        @engine = make_engine(storage: @storage)
        ids = [publish("/a", "1"), publish("/a", "2")]
        3.times do |n|
          restart(die: n.odd?)
          assert_equal ids.last, @engine.last_event_id
          assert_equal ids.last, subscribe(exact("/a"), last_event_id: ids.last).last_event_id
          ids << publish("/a", (n + 3).to_s)
        end
        assert_equal ids, ids.uniq
        assert_equal %w[2 3 4 5], received(subscribe(exact("/a"), last_event_id: ids.first))
      end
    end

    test "the cursor of a log in which there was nothing yet is known after a restart, with what was published meanwhile behind it" do
      with_storage do
        @engine = make_engine(storage: @storage)
        cursor = @engine.cursor(grant(exact("/a")))
        refute_equal "earliest", cursor
        [false, true].each do |die|
          restart(die: die)
          assert_equal cursor, subscribe(exact("/a"), last_event_id: cursor).last_event_id
        end
        assert_equal cursor, @engine.cursor(grant(exact("/a")))
        publish("/a", "meanwhile")
        restart
        reader = subscribe(exact("/a"), last_event_id: cursor)
        assert_equal [cursor, ["meanwhile"]], [reader.last_event_id, received(reader)]
      end
    end

    test "history is bounded by its bytes on the disk, too, and goes on from the oldest that is retained" do
      with_storage do |folder|
        @engine = make_engine(storage: @storage, history: 2 << 20)
        ids = Array.new(300) { |n| publish("/a", "#{n} #{"x" * 30_000}").tap { @engine.await(@engine.ticket) if @engine.ticket } }
        restart(history: 2 << 20)
        assert_operator Dir["#{folder}/*.seg"].sum { |file| File.size(file) }, :<=, 6 << 20
        assert_equal "earliest", subscribe(exact("/a"), last_event_id: ids.first).last_event_id
        retained = received(subscribe(exact("/a"), last_event_id: "earliest")).map(&:to_i)
        assert_equal (300 - retained.size...300).to_a, retained
        assert_operator retained.size, :>, 40
        assert_equal ids.last, @engine.last_event_id
      end
    end

    test "what is older than its age is not kept, nor given to whoever asks for everything" do
      with_storage(age: 0.1) do
        @now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
        @engine = make_engine(storage: @storage)
        first = publish("/a", "old")
        restart
        assert_equal ["old"], received(subscribe(exact("/a"), last_event_id: "earliest"))
        sleep 1.2
        @now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
        @engine.tick(now: @now)
        assert_empty received(subscribe(exact("/a"), last_event_id: "earliest"))
        restart
        assert_empty received(subscribe(exact("/a"), last_event_id: "earliest"))
        assert_equal first, subscribe(exact("/a"), last_event_id: first).last_event_id
        assert_equal first, @engine.cursor(grant(exact("/a")))
        publish("/a", "new")
        assert_equal ["new"], received(subscribe(exact("/a"), last_event_id: "earliest"))
      end
    end

    test "subscription events are kept with the others, so that no position is missing" do
      with_storage do
        documents = Hikyaku::Hub::SubscriptionDocument.new("/.well-known/mercure")
        @engine = make_engine(storage: @storage, documents: documents)
        publish("/a", "1")
        subscribe(exact("/a"))
        seen = publish("/a", "2")
        publish("/a", "3")
        restart(documents: documents)
        assert_equal ["3"], received(subscribe(exact("/a"), last_event_id: seen))
        assert_equal %w[1 2 3], received(subscribe(exact("/a"), last_event_id: "earliest"))
      end
    end

    test "a process that was forked keeps nothing, and takes nothing away" do
      with_storage do
        @engine = make_engine(storage: @storage)
        publish("/a", "1")
        child = fork do
          @engine.abandon_storage
          @engine.rekey
          publish("/a", "of the child")
          exit!(received(subscribe(exact("/a"), last_event_id: "earliest")).size)
        end
        assert_equal 2, Process.wait2(child).last.exitstatus
        publish("/a", "2")
        restart(die: true)
        assert_equal %w[1 2], received(subscribe(exact("/a"), last_event_id: "earliest"))
      end
    end

    test "whoever waits while the storage is closed is told" do
      with_storage(level: :synced) do
        @engine = make_engine(storage: @storage)
        waiting = Array.new(4) do
          Thread.new do
            @engine.await(1 << 40)
          rescue Hikyaku::StorageFailed => error
            error.message
          end
        end
        publish("/a", "kept")
        Thread.pass until waiting.all?(&:stop?)
        @engine.close_storage
        waiting.each { |thread| assert_match(/in doubt|closed/, thread.join(10)&.value.to_s) }
      end
    end

    test "one log is kept by one engine at a time" do
      with_storage do
        @engine = make_engine(storage: @storage)
        error = assert_raises(Hikyaku::Log::Journal::Locked) { make_engine(storage: @storage) }
        assert_match(/another process/, error.message)
      end
    end

    test "what a damaged log has lost is not passed over: the engine refuses to begin" do
      with_storage do |folder|
        @engine = make_engine(storage: @storage)
        3.times { |n| publish("/a", "update #{n}") }
        @engine.close_storage
        segment = Dir["#{folder}/*.seg"].find { |file| File.binread(file).include?("update 1") }
        bytes = File.binread(segment)
        bytes[bytes.index("update 1")] = "U"
        File.binwrite(segment, bytes)
        error = assert_raises(Hikyaku::Log::Journal::Corrupt) { make_engine(storage: @storage) }
        assert_match(/#{File.basename(segment)} is damaged at offset \d+: [^;]*; hikyaku log check \S+ says more, and hikyaku log salvage \S+ keeps what is whole\z/, error.message)
      end
    end

    test "an engine without storage has nothing to wait for, and nothing to end" do
      publish("/a")
      assert_nil @engine.ticket
      @engine.close_storage
      @engine.abandon_storage
    end
  end
end
