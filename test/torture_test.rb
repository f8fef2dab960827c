# frozen_string_literal: true

require "test_helper"
require "open3"
require "tmpdir"

# bin/torture can tell a sound journal from one that is not.
class TortureTest < Minitest::Test
  PROGRAM = File.expand_path("../bin/torture", __dir__)

  def setup = @folder = Dir.mktmpdir("torture")

  def teardown = FileUtils.rm_rf(@folder)

  test "it comes to a verdict, and removes what it made" do
    out, status = torture("--seconds", "2", "--seed", "7", @folder)
    assert_predicate status, :success?, out
    assert_match(/\Aseed 7, 2 seconds\npower cuts: [1-9]\d*, nothing .*\nkills: [1-9]\d*, nothing .*\nSOUND: /, out)
    assert_empty Dir.children(@folder)
  end

  {
    "does not sync" => ["power cuts", "Journal", "def bring_to_disk(_, written, drops) = @lock.synchronize { @synced = written; @drops.sync(drops) }"],
    "does not write" => ["kills", "Journal::Files", "def write_all(file, bytes, offset) = (bytes.bytesize > 4000) ? nil : super"]
  }.each do |fault, (part, owner, method)|
    test "it finds a journal that #{fault}" do
      File.write("#{@folder}/fault.rb", <<~RUBY)
        $LOAD_PATH.unshift(#{File.expand_path("../lib", __dir__).inspect})
        require "hikyaku/log/journal"
        Hikyaku::Log::#{owner}.prepend(Module.new { #{method} })
      RUBY
      Dir.mkdir("#{@folder}/disk")
      out, status = torture("--seconds", "4", "--seed", "3", "#{@folder}/disk", ruby: ["-r#{@folder}/fault.rb"])
      assert_equal 1, status.exitstatus, out
      refute_match(/#{part}: \d+, nothing/, out)
      assert_includes out, "NOT SOUND"
      assert_empty Dir.children("#{@folder}/disk")
    end
  end

  test "a folder that is not there is refused, and the help has examples" do
    _, status = torture("#{@folder}/nowhere")
    assert_equal 1, status.exitstatus
    assert_includes torture("--help").first, "bin/torture --seconds 600 /mnt/data"
  end

  private

  def torture(*arguments, ruby: []) = Open3.capture2(RbConfig.ruby, *ruby, PROGRAM, *arguments, err: File::NULL)
end
