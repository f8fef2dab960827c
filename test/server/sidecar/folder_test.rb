# frozen_string_literal: true

require "test_helper"
require "hikyaku/server/sidecar/folder"

class SidecarFolderTest < Minitest::Test
  Folder = Hikyaku::Server::Sidecar::Folder

  def setup
    @base = Dir.mktmpdir
  end

  def teardown = FileUtils.remove_entry(@base)

  def make(**env) = Folder.make({"RUNTIME_DIRECTORY" => @base, **env.transform_keys(&:to_s)})

  test "a folder that nobody asked for is new, this user's alone, and goes when it is over" do
    folder = make
    refute_equal folder.path, make.path
    assert_equal 0o700, File.stat(folder.path).mode & 0o777
    assert_predicate folder, :temporary?
    folder.tell(path: "/hub")
    assert_predicate Folder.new(folder.path), :temporary?
    folder.remove
    refute_path_exists folder.path
  end

  test "a folder that the environment names is made, and stays" do
    folder = make(HIKYAKU_SIDECAR: "#{@base}/a/b")
    assert_equal ["#{@base}/a/b", 0o700], [folder.path, File.stat(folder.path).mode & 0o777]
    refute_predicate folder, :temporary?
    folder.tell(path: "/hub")
    folder.remove
    assert_empty Dir.children(folder.path)
  end

  test "what another Puma made for itself is not taken for one's own" do
    one = make.tap { |folder| folder.tell(path: "/hub") }
    refute_equal one.path, make(HIKYAKU_SIDECAR: one.path).path
  end

  test "a folder that others may write to is refused, and so is one whose sockets would have no name" do
    File.chmod(0o777, @base)
    assert_match(/nobody else may write/, assert_raises(Hikyaku::ConfigError) { make(HIKYAKU_SIDECAR: @base) }.message)
    assert_match(/too long/, assert_raises(Hikyaku::ConfigError) { make(HIKYAKU_SIDECAR: "#{@base}/#{"x" * 100}") }.message)
    File.write("#{@base}/file", "")
    assert_match(/no folder can be made/, assert_raises(Hikyaku::ConfigError) { make(HIKYAKU_SIDECAR: "#{@base}/file/x") }.message)
  end

  test "what is told can be read by this user, and nobody else" do
    folder = make
    folder.tell(path: "/hub", key: "secret")
    assert_equal [0o600], Dir["#{folder.path}/*"].map { |file| File.stat(file).mode & 0o777 }
    assert_equal({path: "/hub", key: "secret", temporary: true, own: true}, Folder.named({"HIKYAKU_SIDECAR" => folder.path}).about)
    refute_includes folder.inspect, "secret"
  end

  test "where nothing was told, there is no hub" do
    assert_nil Folder.named({})
    assert_nil Folder.named({"HIKYAKU_SIDECAR" => ""})
    ["#{@base}/nowhere", @base].each { |path| assert_raises(Hikyaku::Server::Sidecar::Absent) { Folder.named({"HIKYAKU_SIDECAR" => path}).about } }
    File.write("#{@base}/hub.json", "{")
    assert_raises(Hikyaku::Server::Sidecar::Absent) { Folder.new(@base).about }
  end

  test "a default folder is taken by one server at a time, and what a dead one has left goes" do
    path = Folder.path_in(@base)
    FileUtils.mkdir_p(path, mode: 0o700)
    %w[hub.json hub.sock handover.sock].each { |name| File.write("#{path}/#{name}", "{}") }
    sentences = []
    one = Folder.take(path) { |sentence| sentences << sentence }
    assert_equal [path, []], [one.path, Dir.children(path)]
    refute_predicate one, :temporary?
    assert_nil Folder.take(path) { |sentence| sentences << sentence }
    assert_match(/another server of this application has #{path}: .*HIKYAKU_HUB/, sentences.last)
    one.release
    # Between two programs of one hot restart.
    server = UNIXServer.new(one.socket)
    assert_nil Folder.take(path) { |sentence| sentences << sentence }
    server.close
    assert Folder.take(path) { flunk }
  end

  test "where there can be no default folder a sentence says why, and one that no other has is made" do
    {
      "#{@base}/#{"x" * 100}" => /too long/,
      "#{@base}/file/x" => /no folder can be made/,
      Dir.mktmpdir(nil, @base).tap { |path| File.chmod(0o777, path) } => /nobody else may write/
    }.each do |path, reason|
      File.write("#{@base}/file", "")
      sentences = []
      folder = Folder.make({"RUNTIME_DIRECTORY" => @base}, default: path) { |sentence| sentences << sentence }
      assert_predicate folder, :temporary?
      assert_match(/a console does not find this server.*HIKYAKU_HUB.*#{reason}/, sentences.join)
      assert_equal 1, sentences.size
    end
  end

  test "the server that started this process chose its folder for itself: another one is made" do
    one = Folder.make({}, default: "#{@base}/default") { flunk }
    one.tell(path: "/hub")
    assert_predicate make(HIKYAKU_SIDECAR: one.path), :temporary?
  end

  test "a hub is found in the default folder if it answers there, and no other user could have made it" do
    Folder.default = path = "#{@base}/default"
    assert_nil Folder.found
    folder = Folder.make({}, default: path) { flunk }
    folder.tell(path: "/hub")
    assert_nil Folder.found, "a dead one"
    server = UNIXServer.new(folder.socket)
    assert_equal path, Folder.found.path
    File.chmod(0o720, path)
    assert_nil Folder.found
    File.chmod(0o700, path)
    before = Folder.found.edition
    folder.tell(path: "/hub")
    refute_equal before, Folder.found.edition
    File.unlink("#{path}/hub.json")
    assert_nil Folder.found, "one that says nothing yet"
    Folder.default = nil
    assert_nil Folder.found
  ensure
    Folder.default = nil
    server&.close
  end

  test "a folder that is held is locked for whoever tidies up" do
    folder = make
    File.open(folder.path) do |other|
      assert other.flock(File::LOCK_EX | File::LOCK_NB)
      other.flock(File::LOCK_UN)
      folder.hold
      refute other.flock(File::LOCK_EX | File::LOCK_NB)
    end
  end
end
