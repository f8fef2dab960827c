# frozen_string_literal: true

require "test_helper"
require "http/proxy/proxied"

# How the proxy stops: nothing new is taken, and what is running is given time.
class HTTPProxyShutdownTest < Minitest::Test
  include Proxied

  # Answers begin, and go on when the gate says so.
  class Held < Misbehaving::WellBehaved
    # @return [Queue]
    attr_reader :gate

    def initialize
      super
      @gate = Queue.new
    end

    def misbehave(connection, request)
      return super unless request.path.start_with?("/held")
      connection.write("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nhalf")
      @gate.pop
      connection.write("half")
    end
  end

  EXECUTABLE = [RbConfig.ruby, "-I#{File.expand_path("../../../lib", __dir__)}", File.expand_path("../../../exe/hikyaku", __dir__)].freeze
  private_constant :EXECUTABLE

  test "answers, bodies and tunnels that are running end, and nothing new is taken" do
    stopping do |site, server, proxy, thread|
      getting, posting, tunnel, quiet = Array.new(4) { connect(proxy) }
      getting.write("GET #{server.url("/held")} HTTP/1.1\r\nHost: a\r\n\r\n")
      posting.write("POST #{server.url("/held")} HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n")
      tunnel.write("CONNECT #{host(server)} HTTP/1.1\r\nHost: a\r\n\r\n")
      assert_match(/\AHTTP\/1\.1 200 /, tunnel.readpartial(1_000))
      tunnel.write("GET /held HTTP/1.1\r\nHost: a\r\n\r\n")
      ask(quiet, "GET #{server.url("/a")} HTTP/1.1\r\nHost: a\r\n\r\n")
      running = [getting, posting, tunnel]
      said = running.map { |browser| read_to(browser, "half") }
      proxy.stop(grace: 20)
      assert_nil quiet.read(1), "it had nothing to wait for"
      refused = wait_until { connects?(proxy) == false }
      assert refused
      getting.write("GET #{server.url("/after")} HTTP/1.1\r\nHost: a\r\n\r\n")
      assert_predicate thread, :alive?
      3.times { site.gate << true }
      assert_equal "half", tunnel.readpartial(100)
      tunnel.close
      ended = [getting, posting].zip(said).map { |browser, before| before + browser.read }
      ended.each { |text| assert text.end_with?("\r\n\r\nhalfhalf") }
      assert thread.join(60)
      refute_includes server.log.map { |entry| entry[2] }, "/after"
    end
  end

  test "an answer that begins then says that the connection ends with it" do
    %w[GET POST].each do |method|
      gate = Queue.new
      way = Misbehaving::AsTold.new { |_, _| gate.pop && nil }
      stopping(way) do |_, server, proxy, thread|
        browser = connect(proxy)
        browser.write("#{method} #{server.url("/a")} HTTP/1.1\r\nHost: a\r\n#{"Content-Length: 0\r\n" if method == "POST"}\r\n")
        wait_until { server.log.any? }
        proxy.stop(grace: 20)
        gate << true
        assert_match(/\AHTTP\/1\.1 200 .*^Connection: close\r\n/mi, browser.read)
        assert thread.join(60)
      end
    end
  end

  test "what does not end in time is cut off, and who asks twice waits for nothing" do
    [[0.3], [60, 60], [60, 0], [0]].each do |graces|
      stopping do |_, server, proxy, thread|
        browser = connect(proxy)
        browser.write("GET #{server.url("/held")} HTTP/1.1\r\nHost: a\r\n\r\n")
        read_to(browser, "half")
        graces.each { |grace| proxy.stop(grace: grace) }
        assert thread.join(60), graces.inspect
        assert_equal "", browser.read.to_s
      end
    end
  end

  test "what is fetched ahead is let be, as nobody can ask for it any more" do
    gate = Queue.new
    page = "<img src=/1.png><img src=/2.png><img src=/3.png>"
    way = Misbehaving::AsTold.new do |request, _|
      gate.pop if request.path.end_with?(".png")
      "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: #{page.bytesize}\r\n\r\n#{page}" if request.path == "/page.html"
    end
    stopping(way) do |_, server, proxy, thread|
      get(proxy, server, "/page.html", "Accept: text/html")
      tunnel = connect(proxy)
      tunnel.write("CONNECT #{host(server)} HTTP/1.1\r\nHost: a\r\n\r\n")
      tunnel.readpartial(1_000)
      proxy.stop(grace: 20)
      wait_until { proxy.user_state.prefetcher.size.zero? }
      assert_predicate thread, :alive?
      tunnel.close
      assert thread.join(60)
    ensure
      3.times { gate << true }
    end
  end

  %w[TERM INT].each do |signal|
    test "the program lets what is running end on #{signal}, and ends at once on the second" do
      [false, true].each do |twice|
        site = Held.new
        Misbehaving.run(site) do |server|
          running_program do |program, pid|
            port = program.gets[/:(\d+);/, 1]
            browser = TCPSocket.new("127.0.0.1", port)
            browser.write("GET #{server.url("/held")} HTTP/1.1\r\nHost: a\r\n\r\n")
            before = read_to(browser, "half")
            Process.kill(signal, pid)
            assert_match(/\AStopping .* 10 s at most/, program.gets)
            twice ? Process.kill("TERM", pid) : site.gate << true
            assert_equal twice ? "half" : "halfhalf", (before + browser.read)[/\r\n\r\n(.*)\z/m, 1]
            assert_equal "", program.read
            assert_equal 0, Process.wait2(pid).last.exitstatus
          ensure
            browser&.close
          end
        end
      end
    end
  end

  private

  # @yieldparam site [Object]
  # @yieldparam server [Misbehaving::Server]
  # @yieldparam proxy [Hikyaku::HTTP::Proxy]
  # @yieldparam thread [Thread] in which it runs
  def stopping(site = Held.new)
    Misbehaving.run(site) do |server|
      proxy = Hikyaku::HTTP::Proxy.new(memory: nil, allow: ["127.0.0.0/8"])
      thread = Thread.new { proxy.run }
      yield site, server, proxy, thread
    ensure
      proxy.stop
      thread.join
      @sockets&.each(&:close)
    end
  end

  # @yieldparam program [IO] what it says
  # @yieldparam pid [Integer]
  def running_program
    program, out = IO.pipe
    pid = Process.spawn(*EXECUTABLE, "proxy", "--listen", "127.0.0.1:0", "--forget", "--allow", "127.0.0.0/8", out: out)
    out.close
    yield program, pid
  ensure
    program&.close
    begin
      Process.kill("KILL", pid) && Process.wait(pid)
    rescue SystemCallError
      nil # it has ended
    end
  end

  def read_to(browser, ending)
    said = +""
    said << browser.readpartial(1_000) until said.end_with?(ending)
    said
  end

  def connects?(proxy)
    TCPSocket.new("127.0.0.1", proxy.port).close
    true
  rescue SystemCallError
    false
  end
end
