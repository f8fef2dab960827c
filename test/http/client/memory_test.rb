# frozen_string_literal: true

require "test_helper"
require "tmpdir"
require "hikyaku/http/client/memory"

class HTTPClientMemoryTest < Minitest::Test
  Memory = Hikyaku::HTTP::Client::Memory
  KEY = "http://a.example"
  RECORD = {"verdict" => {"state" => "pipe", "score" => 4.5, "since" => 1, "scored_at" => 2, "most" => 100}, "link" => {"round_trip" => 0.26, "rate" => 48_000, "answer" => 1_500}}.freeze
  DAY = 86_400
  private_constant :Memory, :KEY, :RECORD, :DAY

  def setup
    @folder = Dir.mktmpdir
    @path = File.join(@folder, "deep", "er", "origins.json")
    @now = 1_700_000_000.4
  end

  def teardown = FileUtils.rm_rf(@folder)

  test "what is written is read, by others once it is on the disk" do
    memory = open_memory
    assert_equal({}, memory.read(KEY))
    memory.write(KEY, RECORD)
    memory.save
    [memory, open_memory].each { |one| assert_equal RECORD, one.read(KEY).slice("verdict", "link") }
    assert_equal({}, open_memory.read("http://b.example"))
  end

  test "without a file what is known is known to one alone" do
    memory = open_memory(nil)
    memory.write(KEY, RECORD)
    memory.save
    assert_equal RECORD, memory.read(KEY).slice("verdict", "link")
    assert_equal({}, open_memory(nil).read(KEY))
    assert_empty Dir.children(@folder)
  end

  test "what is a day old is forgotten" do
    written
    @now += DAY - 2
    refute_empty open_memory.read(KEY)
    @now += 2
    assert_empty open_memory.read(KEY)
  end

  test "what others have learnt meanwhile stays" do
    one, other = open_memory, open_memory
    [one, other].each { |memory| memory.read(KEY) }
    one.write(KEY, RECORD)
    one.save
    other.write("http://b.example", RECORD)
    other.save
    one.write("http://c.example", {"link" => {}})
    one.save
    memory = open_memory
    %w[http://a.example http://b.example http://c.example].each { |key| refute_empty memory.read(key), key }
  end

  test "the newest is what counts" do
    written
    memory = open_memory
    memory.write(KEY, {"link" => {"rate" => 5}})
    memory.save
    assert_equal({"link" => {"rate" => 5}}, open_memory.read(KEY).slice("verdict", "link"))
  end

  test "the file is not written more often than every few seconds, but for the last time" do
    memory = open_memory
    memory.write(KEY, RECORD)
    first = File.read(@path)
    memory.write(KEY, {"link" => {}})
    assert_equal first, File.read(@path)
    @now += 6
    memory.write("http://b.example", {"link" => {"rate" => 7}})
    assert_equal [{}, {"rate" => 7}], [KEY, "http://b.example"].map { |key| open_memory.read(key)["link"] }
    memory.write(KEY, {"link" => {"rate" => 8}})
    memory.save
    assert_equal({"rate" => 8}, open_memory.read(KEY)["link"])
  end

  test "nothing is written where nothing has changed" do
    open_memory.save
    refute_path_exists @path
    written
    File.write(@path, "changed")
    open_memory.tap { |memory| memory.read(KEY) }.save
    assert_equal "changed", File.read(@path)
  end

  test "the newest 500 are kept" do
    memory = open_memory
    600.times do |i|
      @now += 1
      memory.write("http://#{i}.example", {"link" => {}})
    end
    memory.save
    kept = JSON.parse(File.read(@path))["origins"]
    newest = (100..599).map { |i| "http://#{i}.example" }
    assert_equal newest, kept.keys.sort_by { |key| key[/\d+/].to_i }
  end

  test "nobody else can read it, and nothing is left lying about" do
    written
    assert_equal 0o600, File.stat(@path).mode & 0o777
    assert_equal 0o700, File.stat(File.dirname(@path)).mode & 0o777
    assert_equal %w[origins.json origins.json.lock], Dir.children(File.dirname(@path)).sort
  end

  test "what was written by a clock that is ahead is forgotten, but for a little" do
    written
    @now -= 59
    refute_empty open_memory.read(KEY)
    @now -= 2
    memory = open_memory
    assert_empty memory.read(KEY)
    memory.write("http://b.example", RECORD)
    memory.save
    assert_equal ["http://b.example"], JSON.parse(File.read(@path))["origins"].keys
  end

  test "what is known grows old in a process that runs for long, too" do
    [nil, @path].each do |path|
      memory = open_memory(path)
      memory.write(KEY, RECORD)
      @now += DAY + 1
      assert_empty memory.read(KEY)
    end
  end

  test "without a file the newest 500 are known, and with one that cannot be written" do
    [nil, "/dev/null/x/origins.json"].each do |path|
      memory = open_memory(path)
      memory.write("http://#{"x" * 1_000}.example", RECORD)
      600.times { |i| memory.write("http://#{i}.example", RECORD) }
      memory.write("http://100.example", RECORD)
      memory.write("http://600.example", RECORD)
      kept = (0..600).select { |i| !memory.read("http://#{i}.example").empty? }
      assert_equal [100, *102..600], kept
      assert_empty memory.read("http://#{"x" * 1_000}.example")
      assert_operator memory.instance_variable_get(:@changed).size, :<=, 500
    end
  end

  test "the newest of a file stay known when there are more" do
    memory = open_memory
    500.times do |i|
      memory.write("http://#{i}.example", {"link" => {}})
      @now += 1
    end
    memory.save
    again = open_memory
    again.write("http://new.example", {"link" => {}})
    assert_equal [{}, false], [again.read("http://0.example"), again.read("http://499.example").empty?]
  end

  test "a file that another process holds is waited for in vain no longer than a moment, and written later" do
    written
    before = File.read(@path)
    memory = open_memory
    File.open("#{@path}.lock") do |lock|
      lock.flock(File::LOCK_EX)
      Thread.new { [memory.write("http://b.example", RECORD), memory.save] }.join(60) or flunk "it waits"
      assert_equal [before, RECORD], [File.read(@path), memory.read("http://b.example").slice("verdict", "link")]
    end
    memory.save
    assert_equal RECORD, open_memory.read("http://b.example").slice("verdict", "link")
  end

  # What a file may be that this program did not write.
  BROKEN = ["", " ", "{", "[]", "null", "5", "\"x\"", "{}", '{"version":1}', '{"version":1,"origins":null}', '{"version":1,"origins":[]}', '{"version":1,"origins":"x"}',
    '{"version":2,"origins":{}}', '{"version":"1","origins":{}}', "\xFF\xFE", "\0" * 100, "[" * 200_000, '{"a":' * 500, "{\"version\":1,\"origins\":{\"\xFF\":{}}}", "x" * 1_000_001,
    "NaN", '{"version":1,"origins":{"http://a.example":'].freeze
  private_constant :BROKEN

  test "a file that is broken costs what it knew, and nothing else" do
    FileUtils.mkdir_p(File.dirname(@path))
    BROKEN.each do |content|
      File.binwrite(@path, content)
      memory = open_memory
      assert_equal({}, memory.read(KEY), content[0, 40].inspect)
      memory.write(KEY, RECORD)
      memory.save
      assert_equal RECORD, open_memory.read(KEY).slice("verdict", "link"), content[0, 40].inspect
    end
  end

  NUMBERS = {"since" => 1, "scored_at" => 1}.freeze
  # Records that would not do as numbers.
  UNSOUND = [
    nil, 5, "x", [], {"verdict" => 5}, {"verdict" => []}, {"link" => "x"}, {"link" => []}, {"at" => "now"}, {"at" => nil}, {"at" => []},
    {"verdict" => {}}, {"verdict" => {"since" => 1}}, {"verdict" => {"since" => "1", "scored_at" => 1}}, {"verdict" => {"since" => nil, "scored_at" => 1}},
    {"verdict" => {**NUMBERS, "score" => "x"}}, {"verdict" => {**NUMBERS, "most" => "x"}}, {"verdict" => {**NUMBERS, "most" => {}}}, {"verdict" => {**NUMBERS, "score" => true}},
    {"link" => {"rate" => "x"}}, {"link" => {"rate" => {}}}, {"link" => {"rate" => false}}, {"link" => {"round_trip" => "0.1"}}, {"link" => {"answer" => "x", "rate" => 5}}
  ].freeze
  # The same, with numbers inside.
  NESTED = [{"link" => {"rate" => [5]}}, {"link" => {"rate" => [[5]]}}, {"verdict" => {**NUMBERS, "score" => [5]}}, {"verdict" => {**NUMBERS, "most" => [5]}}].freeze
  private_constant :NUMBERS, :UNSOUND, :NESTED

  test "a record that is unsound is as if there were none, and others are not lost with it" do
    UNSOUND.each { |record| assert_unsound(record) }
  end

  test "a list of numbers is no number" do
    NESTED.each { |record| assert_unsound(record) }
  end

  # What JSON reads and does not write.
  UNWRITABLE = ['"demand":1e999', '"kinds":{"image":[-1e999]}', '"x":{"y":[1,{"z":1e400}]}'].freeze
  private_constant :UNWRITABLE

  test "a record that could not be written again is as if there were none, and keeps nothing else from being written" do
    UNWRITABLE.each { |value| assert_equal [KEY, "http://c.example"], written_beside("\"http://b.example\":{\"at\":#{@now},#{value}}"), value }
  end

  # Older versions of the gem json read these, and cannot write them.
  test "half a character keeps nothing from being written" do
    ['"http://b.example":{"at":%d,"x":[["\ud800"]]}', '"http://b.example":{"at":%d,"x":{"\udfff":[]}}', '"http://b.example\ud800":{"at":%d,"link":{}}'].each do |record|
      assert_includes written_beside(record.sub("%d", @now.to_s)), KEY, record
    end
  end

  test "a file that is no UTF-8 is written anew" do
    ['"http://b.example":{"at":%d,"x":"\xFF\xFE"}', '"http://b.example":{"at":%d,"\xFF":1}', '"http://b\xFF.example":{"at":%d,"link":{}}'].each do |record|
      assert_equal [KEY], written_beside(record.b.sub("%d", @now.to_s)), record
    end
  end

  test "what cannot be written is told to nobody, and what comes after it is written" do
    [Float::NAN, -Float::INFINITY, "\xFF", "\xFF".b].each do |value|
      memory = open_memory
      memory.write(KEY, {"x" => value})
      memory.save
      memory.write("http://b.example", RECORD)
      memory.save
      assert_equal RECORD, open_memory.read("http://b.example").slice("verdict", "link"), value.inspect
    end
  end

  test "records that are sound are read, whatever their numbers" do
    [{}, {"verdict" => nil, "link" => nil}, {"verdict" => NUMBERS, "link" => {}}, {"link" => {"rate" => 1e300, "round_trip" => -5}}, {"verdict" => {**NUMBERS, "score" => nil, "state" => 5}}].each do |record|
      kept(KEY => {"at" => @now, **record})
      assert_equal({"at" => @now, **record}, open_memory.read(KEY))
    end
  end

  test "where nothing can be written nothing is, and it is known all the same" do
    Dir.mkdir(File.join(@folder, "sub"))
    ["/dev/null/x/origins.json", File.join(@folder, "sub"), File.join(@folder, "a" * 300), File.join(@folder, "file", "origins.json")].each do |path|
      File.write(File.join(@folder, "file"), "")
      memory = open_memory(path)
      assert_equal({}, memory.read(KEY))
      memory.write(KEY, RECORD)
      memory.save
      assert_equal RECORD, memory.read(KEY).slice("verdict", "link"), path[0, 60]
    end
  end

  test "what could not be written is written later" do
    blocked = File.join(@folder, "deep")
    File.write(blocked, "")
    memory = open_memory
    memory.write(KEY, RECORD)
    File.delete(blocked)
    memory.save
    assert_equal RECORD, open_memory.read(KEY).slice("verdict", "link")
  end

  test "the file is where caches are" do
    {
      {"XDG_CACHE_HOME" => "/x", "HOME" => "/h"} => "/x/hikyaku/origins.json",
      {"XDG_CACHE_HOME" => nil, "HOME" => "/h"} => "/h/.cache/hikyaku/origins.json",
      {"XDG_CACHE_HOME" => "", "HOME" => "/h"} => "/h/.cache/hikyaku/origins.json",
      {"XDG_CACHE_HOME" => "relative/../..", "HOME" => "/h"} => "/h/.cache/hikyaku/origins.json"
    }.each { |environment, path| assert_equal path, with_environment(environment) { Memory.default_path } }
  end

  private

  def open_memory(path = @path) = Memory.new(path, clock: -> { @now })

  def written
    memory = open_memory
    memory.write(KEY, RECORD)
    memory.save
  end

  def kept(origins)
    FileUtils.mkdir_p(File.dirname(@path))
    File.write(@path, JSON.generate("version" => 1, "origins" => origins))
  end

  # @return [Array<String>] what is known when something was written to a file that has this record, and a sound one
  def written_beside(record)
    FileUtils.mkdir_p(File.dirname(@path))
    File.binwrite(@path, "{\"version\":1,\"origins\":{\"http://c.example\":#{JSON.generate("at" => @now, **RECORD)},#{record}}}")
    memory = open_memory
    assert_equal({}, memory.read("http://b.example"))
    memory.write(KEY, RECORD)
    memory.save
    JSON.parse(File.read(@path))["origins"].keys.sort
  end

  def assert_unsound(record)
    kept(KEY => record.is_a?(Hash) ? {"at" => @now, **record} : record, "http://b.example" => {"at" => @now, **RECORD})
    memory = open_memory
    assert_equal({}, memory.read(KEY), record.inspect)
    assert_equal RECORD, memory.read("http://b.example").slice("verdict", "link")
  end

  def with_environment(environment)
    before = environment.keys.to_h { |name| [name, ENV[name]] }
    ENV.update(environment)
    yield
  ensure
    ENV.update(before)
  end
end
