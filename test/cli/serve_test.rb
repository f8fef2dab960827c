# frozen_string_literal: true

require_relative "cli_helper"
require "tempfile"
require "psych"
require "socket"

class CLIServeTest < Minitest::Test
  include CommandLine

  SECRET = "s3cret-of-the-tests-that-is-long-enough"

  test "print-config shows what counts, where it comes from, and no secrets" do
    Tempfile.create(["hub", ".yml"]) do |file|
      file.write("anonymous: true\nheartbeat: 7\npublisher_key: #{SECRET}\n")
      file.close
      out = done("serve", "--config", file.path, "--print-config", "--heartbeat", "8", "--cors-origin", "https://a.example", "--cors-origin", "*",
        env: {"HIKYAKU_THREADS" => "9", "MERCURE_SUBSCRIBER_JWT_KEY" => SECRET})
      refute_includes out, SECRET
      assert_includes out, "heartbeat: 8  # --heartbeat\n"
      assert_includes out, "threads: 9  # HIKYAKU_THREADS\n"
      assert_includes out, "subscriber_key: \"[hidden]\"  # MERCURE_SUBSCRIBER_JWT_KEY\n"
      assert_includes out, "anonymous: true  # #{file.path}:1: anonymous\n"
      assert_equal %w[https://a.example *], Psych.safe_load(out)["cors_origins"]
    end
  end

  test "switches can be turned off, and the last of a repeated flag counts" do
    out = done("serve", "--print-config", "--dev", "--no-legacy", "--listen", "3031", "--listen", "3032")
    assert_includes out, "legacy: false  # --no-legacy\n"
    assert_includes out, "listen: \"127.0.0.1:3032\"  # --listen\n"
  end

  test "every setting of the table is an option of serve" do
    help = done("serve", "--help")
    Hikyaku::Config::Settings::ALL.select(&:flag?).each { |setting| assert_match(/^ +--(\[no-\])?#{setting.flags.first}\b/, help) }
  end

  test "a port that is taken ends with code 1 and one line" do
    taken = TCPServer.new("127.0.0.1", 0)
    result = hikyaku("serve", "--dev", "--log-level", "error", "--listen", "127.0.0.1:#{taken.addr[1]}")
    assert_equal 1, result.code
    assert_equal "hikyaku: cannot listen on 127.0.0.1:#{taken.addr[1]}: another process listens there; stop it or choose another with --listen\n", result.err
  ensure
    taken.close
  end

  test "a slow reader policy with a bad pattern is refused" do
    result = hikyaku("serve", "--dev", "--log-level", "error", "--listen", "127.0.0.1:0", "--slow-reader", "close=/books/{")
    assert_equal 2, result.code
    assert_equal 1, result.err.lines.size
  end

  test "a key file that cannot be read is refused" do
    result = hikyaku("serve", "--log-level", "error", "--listen", "127.0.0.1:0", "--publisher-key", "file:/does/not/exist", "--anonymous")
    assert_equal 2, result.code
    assert_match(%r{\Ahikyaku: publisher_key.*/does/not/exist}, result.err)
  end
end
