# frozen_string_literal: true

require_relative "cli_helper"
require "minitest/mock"
require "hikyaku/http/proxy"

class CLIProxyTest < Minitest::Test
  include CommandLine

  # [arguments, environment, what the one line says]
  MISTAKES = [
    [%w[--listen 8080], {}, "--listen: expected HOST:PORT, got \"8080\""],
    [%w[--listen 127.0.0.1:65536], {}, "--listen: expected HOST:PORT, got \"127.0.0.1:65536\""],
    [%w[--listen 0.0.0.0:0], {}, "the proxy would listen on 0.0.0.0, where others can reach it: name its users, or listen on 127.0.0.1; see hikyaku proxy --help"],
    [%w[--listen 127.0.0.1:0], {"HIKYAKU_PROXY_USERS" => "ada"}, "HIKYAKU_PROXY_USERS: expected NAME:PASSWORD, separated by commas"],
    [%w[--listen 127.0.0.1:0], {"HIKYAKU_PROXY_USERS" => "ada:"}, "a user of the proxy needs a name without a colon, and a password"],
    [%w[--allow a:b], {}, "\"a:b\" cannot be allowed to the proxy: expected a range (127.0.0.0/8), an address (127.0.0.1:3000) or a name (app.test:3000); see hikyaku proxy --help"]
  ].freeze
  # Arguments, and what the proxy is made with.
  OPTIONS = {
    %w[] => {host: "127.0.0.1", port: 8080, allow: [], users: {}, prefetch: true, all_fields: false, via: true},
    %w[--listen [::1]:3000 --allow 127.0.0.0/8 --allow app.test] => {host: "::1", port: 3000, allow: %w[127.0.0.0/8 app.test]},
    %w[--listen :3000 --all-fields --pass-on --forget --no-via] => {host: "0.0.0.0", port: 3000, all_fields: true, prefetch: false, memory: nil, via: false}
  }.freeze
  private_constant :MISTAKES, :OPTIONS

  MISTAKES.each do |arguments, env, sentence|
    test "#{[*arguments, *env.values].join(" ")} is refused in one line: #{sentence[/[a-z ]+\z/]}" do
      code = sentence.start_with?("--", "HIKYAKU", "a user") ? 2 : nil
      result = hikyaku("proxy", *arguments, env: env)
      assert_equal ["hikyaku: #{sentence}\n", ""], [result.err, result.out]
      code ? assert_equal(code, result.code) : refute_equal(0, result.code)
    end
  end

  test "a name that has no address is refused in one line" do
    Hikyaku::HTTP::Proxy.stub(:new, ->(**) { raise SocketError, "getaddrinfo: Name or service not known" }) do
      result = hikyaku("proxy", "--listen", "name.invalid:80", env: {"HIKYAKU_PROXY_USERS" => "ada:secret"})
      assert_equal "hikyaku: cannot listen on name.invalid, port 80: getaddrinfo: Name or service not known\n", result.err
      assert_equal 1, result.code
    end
  end

  test "what is said on the command line is what the proxy is made with" do
    OPTIONS.each do |arguments, expected|
      made = nil
      refuse = ->(**options) { (made = options) && raise(Errno::EADDRINUSE) }
      Hikyaku::HTTP::Proxy.stub(:new, refuse) do
        result = hikyaku("proxy", *arguments)
        assert_match(/\Ahikyaku: cannot listen on #{Regexp.escape(expected[:host])}, port #{expected[:port]}: /, result.err)
      end
      assert_equal expected, made.slice(*expected.keys), arguments.join(" ")
    end
  end

  test "users are taken from the environment, and shown nowhere" do
    made = nil
    Hikyaku::HTTP::Proxy.stub(:new, ->(**options) { (made = options) && raise(Errno::EADDRINUSE) }) do
      result = hikyaku("proxy", env: {"HIKYAKU_PROXY_USERS" => "ada:se:cret,bob:x"})
      refute_includes result.err + result.out, "cret"
    end
    assert_equal({"ada" => "se:cret", "bob" => "x"}, made[:users])
  end
end
