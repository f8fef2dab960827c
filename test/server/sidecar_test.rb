# frozen_string_literal: true

require "test_helper"
require "hikyaku/server/sidecar"
require "hikyaku/server/sidecar/settings"
require "support/http_client"
require "tmpdir"

# The hub's process, seen from the one that runs it.
class SidecarTest < Minitest::Test
  SECRET = "nobody but the hub may know this one"
  PATIENCE = 60

  def setup
    @base = Dir.mktmpdir
    @folder = Hikyaku::Server::Sidecar::Folder.make({"RUNTIME_DIRECTORY" => @base})
    @said = Queue.new
    @log = "#{@base}/log"
  end

  def teardown
    @sidecar&.stop
    FileUtils.rm_rf(@base)
  end

  def sidecar(settings = {}, folder: @folder)
    Hikyaku::Server::Sidecar.new(folder, output: {out: [@log, "a"], err: [@log, "a"]}, log: ->(sentence) { @said << sentence }) do
      settings = settings.call if settings.respond_to?(:call)
      Hikyaku::Server::Sidecar::Settings.new(anonymous: true, subscriber_key: SECRET, **settings).plan(env: {})
    end
  end

  def start(...) = @sidecar = sidecar(...).start

  # What becomes of a master that is another program from now on.
  #
  # @return [UNIXSocket] what it hands on
  def leave(sidecar)
    sidecar.singleton_class.class_eval { define_method(:revive) { @wake_reader.wait_readable } }
    sidecar.pipe.dup
  end

  def answers? = HttpClient.new(unix: @folder.socket).request("GET", "/readyz").status == 200

  def said = Array.new(@said.size) { @said.pop }

  def await(what = "it")
    deadline = HttpClient.now + PATIENCE
    until (value = yield)
      flunk "waited too long for #{what}: #{said.join("\n")}\n#{File.read(@log)}" if HttpClient.now > deadline
      sleep 0.01
    end
    value
  rescue SystemCallError, EOFError
    retry
  end

  def gone?(pid)
    Process.kill(0, pid)
    File.read("/proc/#{pid}/stat").match?(/\) Z /)
  rescue SystemCallError
    true
  end

  test "the hub answers when it is said to be there, and nobody else learns its secrets" do
    start
    assert answers?
    about = @folder.about
    assert_equal [@sidecar.pid, "/.well-known/mercure"], about.values_at(:pid, :path)
    told = Dir["/proc/[0-9]*/{cmdline,environ}"].map { |path| File.binread(path) rescue "" } # rubocop:disable Style/RescueModifier
    assert_includes told.join, @folder.socket
    [SECRET, about[:key]].each { |secret| refute_includes told.join + File.read(@log) + said.join + @sidecar.inspect, secret }
  end

  test "the hub's process is one of its own: no terminal ends it, and no file of this one is open there" do
    reader, writer = IO.pipe
    writer.close_on_exec = false
    start
    refute_equal Process.getpgid(0), Process.getpgid(@sidecar.pid)
    writer.close
    assert_nil reader.read(1)
  end

  test "a hub that dies is followed by another, however it died" do
    start
    %i[KILL TERM SEGV].each do |signal|
      pid = @sidecar.pid
      Process.kill(signal, pid)
      await("another one") { @sidecar.pid != pid && answers? }
      assert_equal @sidecar.pid, Hikyaku::Server::Sidecar::Folder.new(@folder.path).about[:pid]
      assert gone?(pid)
    end
    assert_match(/has ended by the signal KILL; another/, said.first)
  end

  test "nor does it matter who is told of the end of a child" do
    start
    pid = @sidecar.pid
    reaper = Thread.new { Process.wait(-1) }
    Process.kill(:KILL, pid)
    await("another one") { @sidecar.pid != pid && answers? }
  ensure
    reaper&.kill
  end

  test "what cannot live is tried again and again, with pauses" do
    start
    pid = @sidecar.pid
    File.rename(@folder.path, "#{@base}/away")
    File.write(@folder.path, "in the way")
    Process.kill(:KILL, pid)
    await("two attempts") { @said.size >= 3 }
    sentences = said
    assert_equal 2, sentences.grep(/could not be started: the folder .* cannot be made: file exists/).size, sentences
    File.delete(@folder.path)
    File.rename("#{@base}/away", @folder.path)
    await("the hub") { answers? }
  end

  test "a folder that somebody has taken away is made again, with all that stands in it" do
    start
    pid = @sidecar.pid
    FileUtils.rm_rf(@folder.path)
    Process.kill(:KILL, pid)
    await("the hub") { @sidecar.pid != pid && answers? }
    assert_equal @sidecar.pid, Hikyaku::Server::Sidecar::Folder.new(@folder.path).about[:pid]
    assert_equal 0o700, File.stat(@folder.path).mode & 0o777
  end

  test "a stop is graceful, and leaves nothing behind" do
    start
    stream = HttpClient.new(unix: @folder.socket).stream("GET", "/.well-known/mercure?match=a")
    pid = @sidecar.pid
    @sidecar.stop
    assert gone?(pid)
    assert_empty stream.rest
    assert_operator stream.retry_after, :>, 0
    refute_path_exists @folder.path
    refute_match(/has ended/, said.join)
  end

  test "a signal's handler may say that it is over" do
    start
    previous = trap(:USR1) { @sidecar.tell_to_stop }
    Process.kill(:USR1, Process.pid)
    await("the end") { gone?(@sidecar.pid) }
    refute_match(/has ended/, said.join)
  ensure
    trap(:USR1, previous || "DEFAULT")
  end

  test "when its master is killed, the hub ends, and clears up" do
    pid = fork do
      start
      File.write("#{@base}/pid", @sidecar.pid.to_s)
      sleep
    end
    hub = await("the hub") { File.exist?("#{@base}/pid") && File.read("#{@base}/pid").then { |text| text.to_i unless text.empty? } }
    stream = HttpClient.new(unix: @folder.socket).stream("GET", "/.well-known/mercure?match=a")
    Process.kill(:KILL, pid)
    Process.wait(pid)
    assert_empty stream.rest
    await("the end of the hub") { gone?(hub) }
    refute_path_exists @folder.path
  end

  test "a fork that lets go is neither told of the hub's end, nor in the way of it" do
    start
    child = fork do
      @sidecar.abandon
      sleep
    end
    pid = @sidecar.pid
    Process.kill(:KILL, pid)
    await("another one") { @sidecar.pid != pid && answers? }
    late = fork do
      @sidecar.abandon
      @sidecar.abandon
      sleep
    end
    hub = @sidecar.pid
    @sidecar.stop
    assert gone?(hub)
  ensure
    [child, late].compact.each do |each|
      Process.kill(:KILL, each)
      Process.wait(each)
    end
  end

  test "who comes in its master's place keeps it, as long as its settings are the same" do
    first = start
    pid = first.pid
    @sidecar = sidecar.keep(leave(first))
    assert_equal pid, @sidecar.pid
    assert answers?
    Process.kill(:KILL, pid)
    await("another one") { @sidecar.pid != pid && answers? }
  end

  test "another hub takes its place when its settings are others" do
    first = start
    pid = first.pid
    @sidecar = sidecar({heartbeat: 3}).keep(leave(first))
    refute_equal pid, @sidecar.pid
    assert gone?(pid)
    assert answers?
    assert_includes said.join, "settings have changed"
  end

  test "settings that take long to ask for are compared later; those that are wrong change nothing" do
    asked = Queue.new
    first = start
    pid = first.pid
    @sidecar = sidecar(-> { asked.pop }).keep(leave(first), later: true)
    assert_equal pid, @sidecar.pid
    asked << {heartbeat: "often"}
    await("the mistake") { said.join.include?("heartbeat") }
    assert answers?
    assert_equal pid, @sidecar.pid
  end

  test "another process that has the folder's name publishes to the hub; without one it raises" do
    first = start
    stream = HttpClient.new(unix: @folder.socket).stream("GET", "/.well-known/mercure?match=a")
    assert_match(/\A#/, publish_elsewhere)
    assert_equal "x", stream.next.data
    leave(first)
    Process.kill(:KILL, first.pid)
    await("the end of the hub") { gone?(first.pid) }
    assert_match(/Unreachable/, publish_elsewhere)
    @folder.remove
    assert_match(/Absent: there is no hub in #{@folder.path}/, publish_elsewhere)
  end

  # @return [String] the event's id, or what was raised
  def publish_elsewhere
    code = <<~'RUBY'
      require "hikyaku"
      begin
        print Hikyaku.publish("a", "x")
      rescue Hikyaku::Error => error
        print "#{error.class}: #{error.message}"
      end
    RUBY
    IO.popen({"HIKYAKU_SIDECAR" => @folder.path}, [RbConfig.ruby, "-Ilib", "-e", code], &:read)
  end

  WRONG = {
    {publisher_key: "file:/nowhere"} => /nowhere/,
    {heartbeat: "often"} => /\Aheartbeat: /
  }.freeze

  test "what is wrong is said in one sentence, and leaves nothing behind" do
    WRONG.each do |settings, message|
      error = assert_raises(Hikyaku::ConfigError, Hikyaku::Server::Sidecar::Failed) { sidecar(settings).start }
      assert_match message, error.message
      refute_includes error.message, "\n"
    end
    children = Dir["/proc/#{Process.pid}/task/*/children"].flat_map { |file| File.read(file).split }
    assert_empty children
  end

  test "two hubs are not in one folder" do
    start
    error = assert_raises(Hikyaku::Server::Sidecar::Failed) { sidecar.start }
    assert_match(/another process listens there/, error.message)
    assert answers?
  end
end
