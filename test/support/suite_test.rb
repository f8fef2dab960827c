# frozen_string_literal: true

require "test_helper"
require "stringio"
require "tmpdir"
require_relative "suite/runner"
require_relative "suite/selection"

# The runner behind bin/test: it must never say that all is well when something was not tested.
class SuiteTest < Minitest::Test
  test "a part that passes is ok, and its output and number of tests are shown" do
    passed, out = run_tests("test(%(one)) { assert true }")
    assert passed
    assert_match(/^files +ok +1 +0 /, out)
    assert_match(/1 runs, 1 assertions/, out)
    assert_match(/^everything passed/, out)
  end

  test "one failing part fails everything, and is named" do
    passed, out = run_parts(part("good", "exit 0"), part("bad", "warn %(it broke); exit 1"))
    refute passed
    assert_match(/^bad +FAILED/, out)
    assert_match(/^good +ok/, out)
    assert_match(/it broke/, out)
    assert_match(/^FAILED: bad /, out)
  end

  test "what failed is named once more at the end" do
    _, out = run_tests("test(%(breaks)) { flunk %(no moon) }")
    assert_match(/^FAILED: files .*\n  files: SampleTest: test_breaks \(no moon\)\n\z/, out)
  end

  test "so is what failed with bytes that are no text" do
    _, out = run_tests("test(%(breaks)) { flunk [0xe9, 0xff, 0x21].pack(%(C*)) }")
    assert_match(/^FAILED: files .*\n  files: SampleTest: test_breaks \(\uFFFD\uFFFD!\)\n\z/, out)
  end

  test "the slowest tests are named, once they take long" do
    _, out = run_tests("define_method(:time) { 12.0 }; test(%(takes its time)) { assert true }")
    assert_match(/^The slowest tests:\n +12\.0 s  files: SampleTest: test_takes_its_time$/, out)
    refute_match(/The slowest/, run_tests("test(%(one)) { assert true }").last)
  end

  test "a test process that dies before it has reported fails" do
    refute run_tests("at_exit { exit!(0) }").first
    refute run_tests("Process.kill(:KILL, $$)").first
  end

  test "test files with no test in them fail" do
    passed, out = run_tests("")
    refute passed
    assert_match(/no test ran/, out)
  end

  test "a skipped test is listed with its reason" do
    passed, out = run_tests("test(%(needs it)) { skip_unless_available(%(frobnicator)) }")
    assert passed
    assert_match(/^SKIPPED, so NOT tested here \(1\):\n  SampleTest: test_needs_it \(frobnicator is not installed/, out)
  end

  test "so is one for which there are no headers" do
    Dir.mktmpdir do |nowhere|
      passed, out = run_tests("test(%(needs it)) { skip_unless_available(headers: %(zlib.h)) }", {"PATH" => nowhere})
      assert passed, out
      assert_match(/^  SampleTest: test_needs_it \(zlib\.h is not installed \(Debian: zlib1g-dev\): bin\/setup --tests\)/, out)
    end
  end

  test "where nothing may be skipped, a skip is a failure" do
    %w[CI HIKYAKU_NO_SKIP].each do |name|
      passed, out = run_tests("test(%(needs it)) { skip %(no moon) }", {name => "1"})
      refute passed, name
      assert_match(/nothing may be skipped: no moon/, out)
    end
  end

  test "a test that hangs is stopped, and it is said which and where" do
    passed, out = run_tests("test(%(hangs)) { sleep }", limit: 12)
    refute passed
    assert_match(/still running: SampleTest#test_hangs\n.*sample_test.rb:3:in `sleep'/m, out)
    assert_match(/^files +FAILED .*stopped after 0 minutes/, out)
  end

  test "tests that go on are not stopped, however long they take together" do
    passed, out = run_tests("3.times { |n| test(n.to_s) { sleep 5 } }", limit: 12)
    assert passed, out
  end

  test "the second command of a part runs only if the first did well" do
    first = Suite::Part.new(name: "two", commands: [ruby("exit 1"), ruby("puts %(second)")])
    passed, out = run_parts(first)
    refute passed
    refute_match(/second/, out)
  end

  # A test that starts a process of its own group, one without the run's environment, and one whose parent ends; and goes on, or not.
  LEAVES = <<~RUBY
    test(%(leaves processes)) do
      sleeping = ["sleep", "10000"]
      pids = [spawn(*sleeping, pgroup: true), spawn({"PATH" => ENV["PATH"]}, *sleeping, unsetenv_others: true, pgroup: true)]
      middle = IO.popen(["sh", "-c", "sleep 10000 > /dev/null & echo $!; sleep 3"])
      pids << middle.gets.to_i
      Process.detach(middle.pid)
      sleep 2 # they are seen
      File.write(ENV.fetch("HIKYAKU_TEST_PIDS") + "+", pids.join(" "))
      File.rename(ENV["HIKYAKU_TEST_PIDS"] + "+", ENV["HIKYAKU_TEST_PIDS"])
      HOW
    end
  RUBY
  private_constant :LEAVES

  test "what a run has started ends with it" do
    skip "there is no /proc here" unless File.exist?("/proc/self/stat")
    Dir.mktmpdir do |folder|
      passed, out = run_tests(LEAVES.sub("HOW", "pass"), {"HIKYAKU_TEST_PIDS" => "#{folder}/pids"})
      assert passed, out
      assert_gone File.read("#{folder}/pids").split
    end
  end

  %w[KILL TERM INT].each do |signal|
    test "what a run has started ends with it, when it is ended by #{signal}" do
      skip "there is no /proc here" unless File.exist?("/proc/self/stat")
      Dir.mktmpdir do |folder|
        file = File.join(folder, "sample_test.rb")
        File.write(file, "require %(test_helper)\nclass SampleTest < Minitest::Test\n#{LEAVES.sub("HOW", "sleep")}\nend\n")
        run = Process.spawn({"HIKYAKU_TEST_PIDS" => "#{folder}/pids"}, RbConfig.ruby, "test/support/suite.rb", file, out: IO::NULL, err: IO::NULL, pgroup: true)
        wait_until { File.exist?("#{folder}/pids") }
        Process.kill(signal, run)
        Process.wait(run)
        assert_gone File.read("#{folder}/pids").split
      end
    end
  end

  test "arguments name parts, files and folders, and pass on what is Minitest's" do
    assert_equal ["contract", "lint"], Suite::Selection.new(%w[contract lint]).parts.map(&:name)
    command = Suite::Selection.new(["test/style_test.rb", "-n", "/lock/"]).parts.first.commands.first
    assert_equal ["test/style_test.rb", "--", "-n", "/lock/"], command.last(4)
    folder = Suite::Selection.new(["test/support"]).parts.first.commands.first
    assert_includes folder, "test/support/suite_test.rb"
    error = assert_raises(ArgumentError) { Suite::Selection.new(["nothing"]).parts }
    assert_match(/nothing is neither a file nor a part; the parts are /, error.message)
  end

  test "every test file is in exactly one part, or in several that differ in the engine, the server or the version of Rails" do
    named = Suite::Selection.new([]).parts.flat_map do |part|
      part.commands.flat_map { |command| command.grep(/_test\.rb\z/).map { |file| [file, command.grep(Hash).first] } }
    end
    assert_equal Dir["test/**/*_test.rb"].sort, named.map(&:first).uniq.sort
    assert_equal named.uniq, named
    repeated = named.map(&:first).tally.select { |_, count| count > 1 }.keys.map { |file| file[%r{\Atest/[^/]+}] }.uniq.sort
    assert_equal %w[test/integration test/protocol test/rails test/system], repeated
  end

  private

  def wait_until(seconds = 180)
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
    sleep 0.05 until yield || Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
    assert yield
  end

  def assert_gone(pids)
    assert_equal 3, pids.size
    wait_until { pids.none? { |pid| File.exist?("/proc/#{pid}/stat") && File.read("/proc/#{pid}/stat")[/\) (\w)/, 1] != "Z" } }
  end

  def run_tests(body, env = {}, limit: 60)
    Dir.mktmpdir do |folder|
      file = File.join(folder, "sample_test.rb")
      File.write(file, "require %(test_helper)\nclass SampleTest < Minitest::Test\n#{body}\nend\n")
      part = Suite::Parts.process("files", [file])
      part.commands.first.unshift({"CI" => nil, "HIKYAKU_NO_SKIP" => nil}.merge(env))
      run_parts(part, limit: limit)
    end
  end

  def run_parts(*parts, limit: 60)
    out = StringIO.new
    passed = Dir.chdir(File.expand_path("../..", __dir__)) { Suite::Runner.new(parts, out: out, limit: limit).run }
    [passed, out.string]
  end

  def part(name, code) = Suite::Part.new(name: name, commands: [ruby(code)])

  def ruby(code) = [RbConfig.ruby, "--disable-gems", "-e", code]
end
