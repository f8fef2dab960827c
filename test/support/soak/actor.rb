# frozen_string_literal: true

class Soak
  # What one client does, one method a thing; each returns how often it was done.
  class Actor
    include AccessTokens

    NONSENSE = [
      "GET / HTTP/1.1\r\n\r\n", "\x16\x03\x01\x02\x00\n", "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
      "GET /#{"a" * 20_000} HTTP/1.1\r\n", "A: b\r\n" * 500, "GET / HTTP/1.1\r\nHost: a\r\nX: \0\r\n\r\n", "\r\n\r\n\r\n", "GET #{PATH} HTTP/1.1\r\nHost: a\r\n" + "X: #{"y" * 900}\r\n" * 100
    ].freeze
    LARGE = "x" * 20_000
    private_constant :NONSENSE, :LARGE

    # @param hub [NativeHub]
    # @param tokens [Array<String>] of publishers
    # @param random [Random]
    def initialize(hub, tokens, random)
      @hub = hub
      @tokens = tokens
      @random = random
      @reader = token(:subscriber, "*", sub: "reader", exp: 2_000_000_000, iat: 0)
    end

    def publish_one_by_one(ledger)
      connection = connect
      times = 1 + @random.rand(20)
      times.times do
        connection.write(publication("#{BOOK}/faithful", data = ledger.next_data))
        acknowledge(connection, ledger, data)
      end
      times
    ensure
      connection.close
    end

    def publish_in_one_go(ledger)
      connection = connect
      all = Array.new(1 + @random.rand(100)) { ledger.next_data }
      connection.write(all.map { |data| publication("#{BOOK}/faithful", data) }.join)
      all.each { |data| acknowledge(connection, ledger, data) }
      all.size
    ensure
      connection.close
    end

    # What became of them nobody has told it.
    def publish_and_drop(ledger)
      ledger.begin_series
      all = Array.new(1 + @random.rand(10)) { publication("#{BOOK}/faithful", ledger.next_data) }.join
      send_and_reset(all[0, [@random.rand(2 * all.bytesize), all.bytesize].min])
    end

    def come_and_go(_ledger)
      stream = follow("#{BOOK}/#{%w[faithful large other].sample(random: @random)}")
      stream.comments_until(1) if @random.rand < 0.8
      1
    ensure
      stream&.close
    end

    # Before it is answered, or while it is, or after.
    def reset(_ledger)
      asked = [subscription("#{BOOK}/faithful"), subscription("#{BOOK}/#{@random.rand(100)}"), "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n", publication("#{BOOK}/é", "x")]
      send_and_reset(asked.sample(1 + @random.rand(4), random: @random).join, [0, @random.rand * 0.01, @random.rand * 0.05].sample(random: @random))
    end

    def close_half(_ledger)
      socket = TCPSocket.new("127.0.0.1", @hub.port)
      socket.write([subscription("#{BOOK}/faithful"), publication("#{BOOK}/other", "x"), "GET / HT", ""].sample(random: @random))
      socket.close_write
      expect(socket.wait_readable(60) && read_up(socket), "an end for who has closed its side")
      1
    ensure
      socket&.close
    end

    # A reader with little room. The hub may have lost its patience.
    def read_slowly(_ledger)
      socket = small
      socket.write(subscription("#{BOOK}/large"))
      20.times do
        socket.wait_readable(0.02) && socket.read_nonblock(1 + @random.rand(8_000), exception: false) || break
        sleep 0.01
      end
      1
    rescue Errno::ECONNRESET
      1
    ensure
      socket.close
    end

    # The same, and a publisher that fills what there is of it.
    def read_nothing(_ledger)
      socket = small
      socket.write(subscription("#{BOOK}/large"))
      connection = connect
      10.times do
        connection.write(publication("#{BOOK}/large", LARGE))
        expect(answer(connection).status == 200, "a large publish to be taken")
        sleep 0.01
      end
      1
    ensure
      socket.close
      connection&.close
    end

    def dribble(_ledger)
      bytes = [publication("#{BOOK}/other", "dribbled"), subscription("#{BOOK}/other")].sample(random: @random)
      socket = TCPSocket.new("127.0.0.1", @hub.port)
      bytes.scan(/.{1,#{10 + @random.rand(40)}}/m) do |part|
        socket.write(part)
        sleep 0.002
      end
      expect(answer(HttpClient::Connection.new(socket), head_only: true).status == 200, "a dribbled request to be answered")
      1
    ensure
      socket&.close
    end

    def talk_nonsense(_ledger)
      socket = TCPSocket.new("127.0.0.1", @hub.port)
      bytes = NONSENSE.sample(random: @random)
      bytes = bytes.b.tap { |copy| copy.setbyte(@random.rand(copy.bytesize), @random.rand(256)) } if @random.rand < 0.5
      socket.write(bytes)
      socket.close_write
      read_up(socket)
      1
    rescue SystemCallError
      1
    ensure
      socket&.close
    end

    # A stream ends with its token.
    def expire(_ledger)
      stream = follow("#{BOOK}/other", token: token(:subscriber, "#{BOOK}/other", exp: Time.now.to_i + 1, sub: "s#{@random.rand(50)}"))
      return 1 unless stream.is_a?(EventStream) # it took too long to get here
      stream.rest(60)
      expect(stream.ended?, "the end of a stream with its token")
      1
    ensure
      stream.close if stream.is_a?(EventStream)
    end

    # Closes streams of its own, and of those who have the same subject.
    def disconnect(_ledger)
      subject = "s#{@random.rand(5)}"
      stream = follow("#{BOOK}/other", token: token(:subscriber, "*", sub: subject, jti: "j", iat: 0, exp: 2_000_000_000))
      response = @hub.client.request("DELETE", "#{PATH}/subscribers/#{subject}#{"?revoke=0" if @random.rand < 0.5}", headers: @hub.bearer(@hub.publisher))
      expect(response.status == 200, "a subject to be disconnected")
      stream.rest(60)
      expect(stream.ended?, "the end of a stream that is disconnected")
      1
    ensure
      stream&.close
    end

    # What the engine never answers by itself.
    def ask_ruby(_ledger)
      statuses = [
        @hub.get("/healthz"), @hub.get("/metrics"), @hub.get("/nothing"), @hub.post("data=x"), @hub.post({topic: "a"}, token: "x.y.z"),
        @hub.client.request("OPTIONS", PATH), @hub.client.request("HEAD", "#{PATH}?match=a"),
        @hub.get("#{PATH}/subscriptions", headers: @hub.bearer(@reader)), @hub.post({topic: "#{BOOK}/#{@random.rand(100)}é", data: "x"}),
        @hub.post({topic: "#{BOOK}/other", data: "x"}, headers: {"idempotency-key" => @random.rand(1_000).to_s})
      ].map(&:status)
      expect(statuses == [200, 200, 404, 400, 401, 204, 200, 200, 200, 200], "Ruby's answers, not #{statuses}")
      statuses.size
    end

    def stay_idle(_ledger)
      sockets = Array.new(20) { TCPSocket.new("127.0.0.1", @hub.port) }
      sleep 0.2
      sockets.size
    ensure
      sockets.each(&:close)
    end

    private

    def connect = @hub.client.connect

    # With little room for what comes.
    def small
      socket = Socket.new(:INET, :STREAM)
      socket.setsockopt(:SOCKET, :RCVBUF, 4_096)
      socket.connect(Addrinfo.tcp("127.0.0.1", @hub.port))
      socket
    end

    def follow(topic, token: nil)
      stream = @hub.subscribe({match: topic}, token: token)
      expect(stream.is_a?(EventStream) || token, "a stream")
      stream
    end

    def send_and_reset(bytes, seconds = 0)
      socket = TCPSocket.new("127.0.0.1", @hub.port)
      socket.setsockopt(:SOCKET, :LINGER, [1, 0].pack("ii"))
      socket.write(bytes)
      sleep seconds
      1
    ensure
      socket&.close
    end

    def publication(topic, data)
      body = URI.encode_www_form(topic: topic, data: data)
      "POST #{PATH} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer #{@tokens.sample(random: @random)}\r\nContent-Type: #{FORM}\r\nContent-Length: #{body.bytesize}\r\n\r\n#{body}"
    end

    def subscription(topic) = "GET #{PATH}?match=#{topic} HTTP/1.1\r\nHost: a\r\n\r\n"

    def answer(connection, head_only: false)
      response = connection.head(HttpClient.now + 20)
      response.body = connection.body(response, "GET", HttpClient.now + 20) unless head_only
      response
    end

    def acknowledge(connection, ledger, data)
      response = answer(connection)
      expect(response.status == 200, "a publish to be taken, not #{response.status} #{response.body}")
      ledger.acknowledged << data
    end

    def read_up(socket)
      nil while socket.readpartial(65_536)
    rescue EOFError, Errno::ECONNRESET
      true
    end

    def expect(truth, what)
      raise "expected #{what}" unless truth
    end
  end
end
