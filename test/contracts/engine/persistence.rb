# frozen_string_literal: true

require "tmpdir"
require "hikyaku/log/journal/salvage"

# What an engine keeps over a restart, for those that have storage.
module PersistenceContract
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

  # @param folder [String] in use
  # @yieldparam copy [String] of the folder as it is
  # @yieldparam behind [String] the id of an update that the engine has published since then; it has the folder no more
  def with_copy(folder)
    Dir.mktmpdir do |copy|
      FileUtils.cp_r("#{folder}/.", copy)
      behind = publish("/a", "behind the copy")
      @engine.abandon_storage
      yield copy, behind
    end
  end

  # The engine on the copy gives no id that was given behind it, and tells a gap.
  def assert_other_ids(kept, behind)
    refute_equal behind, publish("/a", "of the copy")
    assert_equal [kept, [:lost, "of the copy"]], read_after(kept)
  end

  # Another process, after the one before has ended, or died.
  def restart(die: false, **options)
    die ? @engine.abandon_storage : @engine.close_storage
    @engine = make_engine(storage: @storage, **options)
  end

  # What a loss of power takes: all from a text on that was written and not synced, and what the kernel knew.
  def cut_power(folder, from: nil, forget: true)
    @engine.abandon_storage
    File.unlink("#{folder}/watermark") if forget
    return unless from
    path = Dir["#{folder}/*.seg"].max
    bytes = File.binread(path)
    at = bytes.index(from) or raise "#{from} is not in #{path}"
    bytes[at..] = "\0".b * (bytes.bytesize - at)
    File.binwrite(path, bytes)
  end

  # Begins again, with what the log says of it.
  def begin_again(**options)
    @said = []
    @engine = make_engine(storage: @storage.merge(report: ->(level, sentence) { @said << [level, sentence] }), **options)
  end

  # What a reader gets who comes back with this cursor; a gap is its reason.
  def read_after(id, *matchers)
    reader = subscribe(*(matchers.empty? ? [exact("/a")] : matchers), last_event_id: id)
    received(reader)
    events = reader.connection.received.split("\n\n")
    [reader.last_event_id, events.map { |event| event.include?("event: mercure") ? event[/"reason":"(\w+)"/, 1].to_sym : event[/^data:(.*)/, 1].strip }]
  end

  tests do
    test "topics that nothing else has count for the history that holds them, and no longer" do
      @engine = make_engine(history: 1 << 20)
      3000.times { |n| publish(["/t", *Array.new(10) { |i| "/alternate/#{n}/#{i}" }], "x") }
      stats = @engine.stats
      assert_operator stats[:history_updates], :<, 3_000
      assert_operator stats[:history_bytes], :<=, 1 << 20
      3000.times { publish("/t", "x") }
      assert_operator @engine.stats[:history_updates], :>, 2_000
    end

    %i[written synced].each do |level|
      test "after a loss of power at level #{level} no id that was lost is given again, and every reader from before is told" do
        with_storage(level: level) do |folder|
          @engine = make_engine(storage: @storage)
          kept = Array.new(3) { |n| publish("/a", "kept #{n}") }
          lost = Array.new(4) { |n| publish("/a", "lost #{n}") }
          cut_power(folder, from: "lost 0")
          begin_again
          fresh = Array.new(10) { |n| publish("/a", "new #{n}") }
          assert_empty fresh & (kept + lost)
          new = Array.new(10) { |n| "new #{n}" }
          assert_equal [kept[1], ["kept 2", :lost, *new]], read_after(kept[1])
          assert_equal [kept[2], [:lost, *new]], read_after(kept[2])
          lost.each { |id| assert_equal ["earliest", [:unknown, "kept 0", "kept 1", "kept 2", :lost, *new]], read_after(id) }
          assert_equal [fresh[8], ["new 9"]], read_after(fresh[8])
          assert_equal 1, @said.size
          assert_equal :error, @said.first.first
          assert_match((level == :synced) ? /no acknowledged update is missing/ : /up to \d+ acknowledged updates may be missing/, @said.first.last)
          assert_includes @said.first.last, folder
          2.times do |round|
            round.zero? ? @engine.close_storage : @engine.abandon_storage
            begin_again
            assert_empty @said
            assert_equal [kept[2], [:lost, *new]], read_after(kept[2])
            assert_equal [fresh[8], ["new 9"]], read_after(fresh[8])
            assert_equal "earliest", read_after(lost.first).first
            refute_includes kept + lost + fresh, publish("/b", "another")
          end
        end
      end
    end

    test "the gap of a loss is told to whoever comes back, whatever it subscribes to; its own id is a cursor, and so is that of a page rendered after it" do
      with_storage do |folder|
        @engine = make_engine(storage: @storage)
        kept = publish("/a", "kept")
        publish("/a", "lost")
        cut_power(folder, from: "lost")
        begin_again
        rendered = @engine.cursor(grant(exact("/a")))
        assert_equal [rendered, []], read_after(rendered)
        reader = subscribe(exact("/elsewhere", "/nowhere"), last_event_id: kept)
        received(reader)
        gap = reader.connection.received
        assert_equal kept, gap[/"last_event_id":"([^"]+)"/, 1]
        assert_equal rendered, gap[/^id: ?(\S+)/, 1]
        refute_includes gap, "matches"
        publish("/a", "new")
        assert_equal [rendered, ["new"]], read_after(rendered)
        assert_empty received(subscribe(exact("/elsewhere")))
      end
    end

    test "a loss of power over and over makes a gap each time, and never an id twice" do
      with_storage do |folder|
        @engine = make_engine(storage: @storage)
        ids = []
        4.times do |round|
          ids << publish("/a", "kept #{round}")
          ids << publish("/a", "lost #{round}")
          cut_power(folder, from: "lost #{round}")
          begin_again
          assert_equal 1, @said.size
        end
        ids << publish("/a", "last")
        assert_equal ids.uniq, ids
        assert_equal [ids.first, [:lost, "kept 1", :lost, "kept 2", :lost, "kept 3", :lost, "last"]], read_after(ids.first)
        assert_equal ["earliest", [:unknown, "kept 0", :lost, "kept 1", :lost, "kept 2", :lost, "kept 3", :lost, "last"]], read_after(ids[3])
      end
    end

    test "what is missing though the machine ran on is counted, and told as a gap" do
      with_storage do |folder|
        @engine = make_engine(storage: @storage)
        kept = publish("/a", "kept")
        lost = Array.new(5) { |n| publish("/a", "lost #{n}") }
        cut_power(folder, from: "lost 2", forget: false)
        begin_again
        assert_match(/; 3 updates that were published behind it are missing\./, @said.first.last)
        refute_includes lost, publish("/a", "new")
        assert_equal [kept, ["lost 0", "lost 1", :lost, "new"]], read_after(kept)
      end
    end

    test "a copy of a folder that was in use goes on with other ids: the one that it was copied from has gone on as well" do
      with_storage do |folder|
        @engine = make_engine(storage: @storage)
        kept = publish("/a", "kept")
        with_copy(folder) do |copy, behind|
          @engine = make_engine(storage: @storage.merge(folder: copy))
          assert_other_ids(kept, behind)
          @engine.abandon_storage
        end
      end
    end

    test "a copy that is laid over the folder goes on with other ids, though the files are the same" do
      with_storage do |folder|
        @engine = make_engine(storage: @storage)
        kept = publish("/a", "kept")
        with_copy(folder) do |copy, behind|
          sleep 0.05 # files' times tell apart what is further apart than ticks of the kernel
          Dir["#{copy}/*"].each { |path| File.binwrite("#{folder}/#{File.basename(path)}", File.binread(path)) }
          begin_again
          assert_other_ids(kept, behind)
        end
      end
    end

    test "a copy that was made after a stop in order goes on with other ids, too, and the log does not say how many updates are missing" do
      with_storage(level: :synced) do |folder|
        @engine = make_engine(storage: @storage)
        kept = publish("/a", "kept")
        @engine.close_storage
        Dir.mktmpdir do |copy|
          FileUtils.cp_r("#{folder}/.", copy)
          @engine = make_engine(storage: @storage)
          behind = publish("/a", "behind the copy")
          @engine.close_storage
          FileUtils.rm_rf(Dir["#{folder}/*"])
          FileUtils.cp_r("#{copy}/.", folder)
          begin_again
          assert_other_ids(kept, behind)
          assert_equal :unknown, read_after(behind).last.first
          assert_match(/is a copy.*; how many were published after the copy was made is not known\./, @said.first.last)
          restart
          assert_equal [kept, [:lost, "of the copy"]], read_after(kept)
        end
      end
    end

    test "a folder that was moved goes on as it was" do
      with_storage do |folder|
        @engine = make_engine(storage: @storage)
        kept = publish("/a", "kept")
        @engine.close_storage
        Dir.mktmpdir do |elsewhere|
          File.rename(folder, "#{elsewhere}/moved")
          @storage[:folder] = "#{elsewhere}/moved"
          begin_again
          publish("/a", "new")
          assert_empty @said
          assert_equal [kept, ["new"]], read_after(kept)
          @engine.abandon_storage
          File.rename("#{elsewhere}/moved", folder)
        end
      end
    end

    # Changes a byte in each of so many copies of the key with which the newest segment begins, and keeps what is whole.
    def damage_key(folder, copies)
      path = Dir["#{folder}/*.seg"].max
      bytes = File.binread(path)
      copies.times { |copy| bytes.setbyte(128 + (48 * copy), bytes.getbyte(128 + (48 * copy)) ^ 1) }
      File.binwrite(path, bytes)
      Hikyaku::Log::Journal::Salvage.new(folder).tap(&:carry_out).close
    end

    test "a byte that changed in the key with which ids went on after a loss makes no id of before stand for another update" do
      with_storage do |folder|
        @engine = make_engine(storage: @storage)
        kept = publish("/a", "kept")
        lost = Array.new(4) { |n| publish("/a", "lost #{n}") }
        cut_power(folder, from: "lost 0")
        @engine = make_engine(storage: @storage)
        after = Array.new(4) { |n| publish("/a", "after #{n}") }
        @engine.abandon_storage
        damage_key(folder, 1)
        begin_again
        publish("/a", "new")
        lost.each { |id| assert_equal :unknown, read_after(id).last.first }
        assert_equal [kept, [:lost, "after 0", "after 1", "after 2", "after 3", "new"]], read_after(kept)
        assert_equal [after[1], ["after 2", "after 3", "new"]], read_after(after[1])
      end
    end

    test "a history whose key is not there any more is read, and its ids are others, which no other such history has" do
      news = Array.new(2) do
        with_storage do |folder|
          @engine = make_engine(storage: @storage)
          ids = Array.new(3) { |n| publish("/a", "kept #{n}") }
          @engine.abandon_storage
          damage_key(folder, 2)
          begin_again
          assert_equal ["earliest", [:unknown, "kept 0", "kept 1", "kept 2"]], read_after(ids[1])
          publish("/a", "new").tap { |id| refute_includes ids, id }
        end
      end
      assert_equal news.uniq, news
    end

    test "after a salvage ids go on with another key: what the log had given may be missing" do
      with_storage do |folder|
        @engine = make_engine(storage: @storage)
        kept = publish("/a", "kept")
        lost = publish("/a", "lost")
        cut_power(folder, from: "lost")
        path = Dir["#{folder}/*.seg"].max
        File.truncate(path, File.binread(path).sub(/\0+\z/n, "").bytesize)
        Hikyaku::Log::Journal::Salvage.new(folder).tap(&:carry_out).close
        begin_again
        refute_equal lost, publish("/a", "new")
        assert_equal [kept, [:lost, "new"]], read_after(kept)
      end
    end

    test "in another run of the kernel nothing is taken for whole that was not closed" do
      with_storage(boot: "1" * 16) do
        @engine = make_engine(storage: @storage)
        kept = publish("/a", "kept")
        @engine.abandon_storage
        @storage[:boot] = "2" * 16
        begin_again
        assert_equal [kept, [:lost]], read_after(kept)
        @engine.close_storage
        @storage[:boot] = "3" * 16
        begin_again
        assert_empty @said
        @engine.abandon_storage
        @storage[:boot] = nil
        2.times do
          begin_again
          assert_equal 1, @said.size
          @engine.abandon_storage
        end
        @engine = make_engine(storage: @storage)
      end
    end

    test "a byte that changed costs the update in which it is: what is behind it is kept, a gap is told there, and the log names the place" do
      with_storage do |folder|
        @engine = make_engine(storage: @storage)
        ids = Array.new(6) { |n| publish("/a", "update #{n}") }
        @engine.abandon_storage
        path = Dir["#{folder}/*.seg"].max
        bytes = File.binread(path)
        [2, 3].each { |n| bytes[bytes.index("update #{n}")] = "U" }
        File.binwrite(path, bytes)
        begin_again
        assert_equal 1, @said.size
        assert_match(/\A#{File.basename(path)} in #{folder} does not verify from offset \d+ to \d+, .*: 2 updates are missing there\./, @said.first.last)
        publish("/a", "new")
        [-1, 1].each do
          assert_equal [ids[0], ["update 1", :lost, "update 4", "update 5", "new"]], read_after(ids[0])
          assert_equal [ids[2], [:lost, "update 4", "update 5", "new"]], read_after(ids[2])
          assert_equal [ids[3], ["update 4", "update 5", "new"]], read_after(ids[3])
          assert_equal [ids[4], ["update 5", "new"]], read_after(ids[4])
          restart(die: true)
        end
      end
    end

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
        waiting.each { |thread| assert_match(/in doubt|closed/, thread.join(60)&.value.to_s) }
      end
    end

    test "one log is kept by one engine at a time" do
      with_storage do |folder|
        @engine = make_engine(storage: @storage)
        error = assert_raises(Hikyaku::Log::Journal::Locked) { make_engine(storage: @storage) }
        assert_match(/\A#{Regexp.escape(folder)}.* another process.* stop it, or use another folder\z/, error.message)
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
