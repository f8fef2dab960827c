# frozen_string_literal: true

require "test_helper"
require "open3"
require "tmpdir"

# The harness of the tests in C: it must never say that all is well when a test failed.
class EngineHarnessTest < Minitest::Test
  ROOT = File.expand_path("../..", __dir__)
  FOLDER = File.join(ROOT, "ext/hikyaku/engine")
  private_constant :ROOT, :FOLDER

  SAMPLE = <<~C
    #include "hk_test.h"
    #include "hk_alloc.h"
    #include <pthread.h>
    #include <unistd.h>

    HK_TEST(one_is_one)
    {
        HK_CHECK_EQUAL_INT(1, 1);
    }

    HK_TEST(one_is_two)
    {
        hk_test_note("row %d", 7);
        void *kept = hk_alloc_new(hk_test_alloc(), 10);
        HK_CHECK(kept != NULL);
        HK_CHECK_EQUAL_INT(2, 1);
        HK_FAIL("is not reached");
    }

    HK_TEST(bytes_differ)
    {
        HK_CHECK_BYTES("a\\0b\\n", HK_BYTES("a\\0c\\n"));
    }

    HK_TEST(a_status_differs)
    {
        HK_CHECK_OK(HK_NO_MEMORY);
    }

    HK_TEST(memory_is_kept)
    {
        hk_alloc_free(hk_test_alloc(), hk_alloc_new(hk_test_alloc(), 5));
        HK_CHECK(hk_alloc_new(hk_test_alloc(), 10) != NULL);
    }

    HK_TEST(memory_is_kept_when_the_second_request_fails)
    {
        HK_EACH_FAILING_ALLOCATION
        {
            void *one = hk_alloc_new(hk_test_alloc(), 1);
            void *two = hk_alloc_new(hk_test_alloc(), 2);
            if (one == NULL || two != NULL) {
                hk_alloc_free(hk_test_alloc(), one);
            }
            hk_alloc_free(hk_test_alloc(), two);
        }
    }

    HK_TEST(something_is_missing)
    {
        hk_test_skip("no moon");
    }

    HK_TEST(crash_beyond_the_end)
    {
        volatile char last = hk_test_guarded(HK_BYTES("abc")).at[3];
        (void)last;
    }

    HK_TEST(crash_in_writing)
    {
        *(char *)(uintptr_t)hk_test_guarded(HK_BYTES("abc")).at = 'x';
    }

    HK_TEST(hang_forever)
    {
        for (;;) {
            pause();
        }
    }

    static void *fail(void *context)
    {
        (void)context;
        HK_FAIL("fails elsewhere");
    }

    HK_TEST(thread_fails)
    {
        pthread_t thread;
        pthread_create(&thread, NULL, fail, NULL);
        pthread_join(thread, NULL);
    }
  C
  private_constant :SAMPLE

  class << self
    attr_accessor :program
  end

  def setup
    return if self.class.program

    folder = Dir.mktmpdir
    Minitest.after_run { FileUtils.rm_rf(folder) }
    source = File.join(folder, "hk_sample_test.c").tap { |path| File.write(path, SAMPLE) }
    harness = %w[hk_test.c hk_test_memory.c].map { |file| File.join(ROOT, "test/engine", file) }
    library = %w[hk_status.c hk_alloc.c hk_bytes.c].map { |file| File.join(FOLDER, "base", file) }
    output, status = Open3.capture2e(ENV.fetch("CC", "cc"), *%w[-std=c11 -D_GNU_SOURCE -pthread -Wall -Wextra -Werror], %(-DHK_TEST_ROOT="#{ROOT}"),
      "-I", File.join(FOLDER, "base"), "-I", File.join(ROOT, "test/engine"), source, *harness, *library, "-o", File.join(folder, "hk_sample_test"))
    assert status.success?, output
    self.class.program = File.join(folder, "hk_sample_test")
  end

  test "a test that passes is counted" do
    assert_equal [true, "hk_sample_test: 1 tests, 0 failed, 0 skipped\n"], run_tests("one is one")
  end

  test "a check that fails ends its test, says where and shows the note, and the next test runs" do
    passed, out = run_tests("one_is")
    refute passed
    assert_match(/^FAILED hk_sample_test: one is two\n    \S+hk_sample_test.c:16: 1 is 1, not 2\n    row 7\nhk_sample_test: 2 tests, 1 failed/, out)
  end

  test "bytes and statuses are shown" do
    assert_match(/byte 2 on\n +expected \(4\) "a\\x00b\\n"\n +is +\(4\) "a\\x00c\\n"/, run_tests("bytes differ").last)
    assert_match(/HK_NO_MEMORY is HK_NO_MEMORY, not HK_OK/, run_tests("status differs").last)
  end

  test "a test that keeps memory fails" do
    passed, out = run_tests("memory is kept")
    refute passed
    assert_match(/did not give back 10 bytes in 1 blocks, the first of them request 2$/, out)
    assert_match(/did not give back 1 of its allocations\n    with allocation 1 failing$/, out)
    assert_match(/2 tests, 2 failed/, out)
  end

  test "a test that cannot run is skipped with its reason" do
    passed, out = run_tests("something is missing")
    assert passed
    assert_equal "SKIPPED hk_sample_test: something is missing\n    no moon\nhk_sample_test: 1 tests, 0 failed, 1 skipped\n", out
  end

  test "reading beyond guarded bytes, or writing to them, crashes and is named" do
    ["crash beyond the end", "crash in writing"].each do |name|
      passed, out = run_tests(name)
      refute passed
      assert_match(/CRASHED in #{name.tr(" ", "_")}/, out)
    end
  end

  test "a test that hangs is stopped and named" do
    passed, out = run_tests("hang forever", {"HK_TEST_SECONDS" => "1"})
    refute passed
    assert_match(/HANGS in hang_forever/, out)
  end

  test "a check that fails in another thread fails the program" do
    passed, out = run_tests("thread fails")
    refute passed
    assert_match(/the test fails elsewhere\n    in another thread/, out)
  end

  private

  def run_tests(name, env = {})
    out, status = Open3.capture2e(env, self.class.program, name)
    [status.success?, out]
  end
end
