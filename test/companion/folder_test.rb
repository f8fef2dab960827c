# frozen_string_literal: true

require "test_helper"
require "hikyaku/companion/folder"

class CompanionFolderTest < Minitest::Test
  Folder = Hikyaku::Companion::Folder

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
    folder = make(HIKYAKU_COMPANION: "#{@base}/a/b")
    assert_equal ["#{@base}/a/b", 0o700], [folder.path, File.stat(folder.path).mode & 0o777]
    refute_predicate folder, :temporary?
    folder.tell(path: "/hub")
    folder.remove
    assert_empty Dir.children(folder.path)
  end

  test "what another Puma made for itself is not taken for one's own" do
    one = make.tap { |folder| folder.tell(path: "/hub") }
    refute_equal one.path, make(HIKYAKU_COMPANION: one.path).path
  end

  test "a folder that others may write to is refused, and so is one whose sockets would have no name" do
    File.chmod(0o777, @base)
    assert_match(/nobody else may write/, assert_raises(Hikyaku::ConfigError) { make(HIKYAKU_COMPANION: @base) }.message)
    assert_match(/too long/, assert_raises(Hikyaku::ConfigError) { make(HIKYAKU_COMPANION: "#{@base}/#{"x" * 100}") }.message)
    File.write("#{@base}/file", "")
    assert_match(/no folder can be made/, assert_raises(Hikyaku::ConfigError) { make(HIKYAKU_COMPANION: "#{@base}/file/x") }.message)
  end

  test "what is told can be read by this user, and nobody else" do
    folder = make
    folder.tell(path: "/hub", key: "secret")
    assert_equal [0o600], Dir["#{folder.path}/*"].map { |file| File.stat(file).mode & 0o777 }
    assert_equal({path: "/hub", key: "secret", temporary: true}, Folder.named({"HIKYAKU_COMPANION" => folder.path}).about)
    refute_includes folder.inspect, "secret"
  end

  test "where nothing was told, there is no hub" do
    assert_nil Folder.named({})
    assert_nil Folder.named({"HIKYAKU_COMPANION" => ""})
    ["#{@base}/nowhere", @base].each { |path| assert_raises(Hikyaku::Companion::Absent) { Folder.named({"HIKYAKU_COMPANION" => path}).about } }
    File.write("#{@base}/hub.json", "{")
    assert_raises(Hikyaku::Companion::Absent) { Folder.new(@base).about }
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
