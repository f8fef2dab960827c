# frozen_string_literal: true

require "openssl"
require "socket"
require "zlib"

# A proxy in front of hubs that has whatever defect a test gives it. One connection is one request.
#
#     proxy = HostileProxy.new(hub.port, hold: {bytes: 16_384})
#     proxy.port
#     proxy.close
class HostileProxy
  # The bodies of what they pass on, each in its own bad way. `pass` takes bytes as they come, and the current time;
  # `due` says how long there is to wait at most; `finish` gives what is left.
  class Faithful
    def initialize(_options = nil)
    end

    def pass(bytes, _now) = bytes

    def due(_now) = nil

    def late(_now) = nil

    def finish = +""
  end

  # Lets nothing go before so many bytes are there, and then all of it.
  class BySize < Faithful
    def initialize(bytes)
      @limit = bytes
      @held = +"".b
    end

    def pass(bytes, _now)
      @held << bytes
      (@held.bytesize >= @limit) ? finish : +""
    end

    def finish = @held.slice!(0..)
  end

  # Lets go what it has each so many seconds.
  class ByTime < Faithful
    def initialize(seconds)
      @seconds = seconds
      @held = +"".b
      @since = nil
    end

    def pass(bytes, now)
      @since ||= now
      @held << bytes
      +""
    end

    def due(now) = @since && [@since + @seconds - now, 0].max

    def late(now)
      return unless @since && now >= @since + @seconds
      @since = nil
      finish
    end

    def finish = @held.slice!(0..)
  end

  # Lets bytes go when the next ones come.
  class OneBehind < Faithful
    def initialize(_)
      @held = +"".b
    end

    def pass(bytes, _now)
      held, @held = @held, bytes
      held
    end

    def finish = @held
  end

  # Compresses, and lets each piece go at once or only when zlib has a block.
  class Gzip < Faithful
    def initialize(flush)
      @flush = flush
      @zlib = Zlib::Deflate.new(nil, 31)
    end

    def pass(bytes, _now) = @zlib.deflate(bytes, @flush ? Zlib::SYNC_FLUSH : Zlib::NO_FLUSH)

    def finish = @zlib.finish
  end

  KINDS = {bytes: BySize, seconds: ByTime, behind: OneBehind}.freeze
  private_constant :Faithful, :BySize, :ByTime, :OneBehind, :Gzip, :KINDS

  # @return [Integer]
  attr_reader :port

  # @param hubs [Array<Integer>] ports; each connection goes to the next
  # @param hold [Hash, nil] of streams: {bytes: N}, {seconds: N} or {behind: true}
  # @param gzip [Symbol, nil] streams of those who allow it: :flushed or :held
  # @param head_with_body [Boolean] a stream's head goes with the first bytes after its first line
  # @param silence [Numeric, nil] seconds without a byte after which it cuts
  # @param lifetime [Numeric, nil] seconds after which it cuts
  # @param deaf [Numeric, nil] seconds after which it passes nothing on any more, and does not cut
  # @param without [Array<String>] fields of requests that it drops, in lower case
  # @param lost [Array<String>] fields of answers that it drops, in lower case
  # @param fields [Hash{String => String}] that it puts into answers, beside those that are there
  # @param stream_fields [Hash{String => String}] likewise, into those of streams
  # @param skew [Numeric] seconds to add to Date
  # @param answers [Hash{Regexp => String}] whole answers that it gives to requests whose first line matches
  # @param tls [Array(OpenSSL::X509::Certificate, OpenSSL::PKey::PKey), nil]
  # @param alpn [Array<String>] protocols that it agrees to
  def initialize(*hubs, hold: nil, gzip: nil, head_with_body: false, silence: nil, lifetime: nil, deaf: nil, without: [], lost: [], fields: {}, stream_fields: {},
    skew: 0, answers: {}, tls: nil, alpn: ["http/1.1"])
    @hubs = hubs
    @hold = hold
    @gzip = gzip
    @head_with_body = head_with_body
    @limits = {silence: silence, lifetime: lifetime, deaf: deaf}
    @without = without
    @lost = lost
    @fields = fields
    @stream_fields = stream_fields
    @skew = skew
    @answers = answers
    @tls = tls && context(tls, alpn)
    @count = -1
    @sockets = []
    @lock = Mutex.new
    @listener = TCPServer.new("127.0.0.1", 0)
    @port = @listener.addr[1]
    @acceptor = Thread.new { accept }
  end

  def close
    @listener.close
    @acceptor.join
    @lock.synchronize { @sockets.each(&:close) }
  end
  alias_method :stop, :close

  private

  def accept
    loop do
      client = @listener.accept
      @lock.synchronize { @sockets << client }
      Thread.new(client) { |socket| serve(socket) }
    end
  rescue IOError, SystemCallError
    nil
  end

  def serve(raw)
    Thread.current.report_on_exception = false
    client = @tls ? encrypted(raw) : raw
    head, body = read_request(client)
    return unless head
    if (answer = @answers.find { |line, _| head.first.match?(line) })
      return client.write(answer.last)
    end
    relay(client, head, body)
  rescue IOError, SystemCallError, OpenSSL::SSL::SSLError
    nil
  ensure
    raw.close
  end

  def context((certificate, key), alpn)
    OpenSSL::SSL::SSLContext.new.tap do |context|
      context.cert = certificate
      context.key = key
      context.alpn_select_cb = ->(offered) { (alpn & offered).first }
    end
  end

  def encrypted(raw) = OpenSSL::SSL::SSLSocket.new(raw, @tls).tap(&:accept)

  def read_request(client)
    lines = read_head(client) or return
    length = lines.filter_map { |line| line[/\Acontent-length: *(\d+)/i, 1] }.first.to_i
    [lines, client.read(length)]
  end

  def read_head(io)
    lines = []
    while (line = io.gets("\r\n")&.chomp)
      return lines if line.empty?
      lines << line
    end
  end

  def relay(client, head, body)
    hub = TCPSocket.new("127.0.0.1", @hubs[@lock.synchronize { @count += 1 } % @hubs.size])
    @lock.synchronize { @sockets << hub }
    fields = head.drop(1).reject { |line| ["connection", *@without].include?(name(line)) }
    hub.write("#{[head.first, *fields, "connection: close"].join("\r\n")}\r\n\r\n#{body}")
    answer = read_head(hub) or return
    stream = answer.any? { |line| line.match?(%r{\Acontent-type: text/event-stream}i) }
    pass_on(client, hub, answer, stream, stream && @gzip && head.any? { |line| line.match?(/\Aaccept-encoding:.*gzip/i) })
  ensure
    hub&.close
  end

  def name(line) = line[/\A[^:]+/].downcase

  def changed(answer, more, zipped)
    fields = answer.drop(1).reject { |line| @lost.include?(name(line)) }
    fields = fields.map { |line| (name(line) == "date") ? "date: #{skewed}" : line } unless @skew.zero?
    fields += more.map { |name, value| "#{name}: #{value}" }
    fields << "content-encoding: gzip" if zipped
    "#{[answer.first, *fields].join("\r\n")}\r\n\r\n"
  end

  def skewed = (Time.now + @skew).utc.strftime("%a, %d %b %Y %H:%M:%S GMT")

  def pass_on(client, hub, answer, stream, zipped)
    head = changed(answer, stream ? @fields.merge(@stream_fields) : @fields, zipped)
    return client.write(head + hub.read) unless stream
    body = policy(zipped)
    pending = head
    unless @head_with_body
      client.write(head)
      pending = +""
    end
    pump(client, hub, body, pending)
  end

  def policy(zipped)
    return Gzip.new(@gzip == :flushed) if zipped
    kind, value = @hold&.first
    KINDS.fetch(kind, Faithful).new(value)
  end

  def pump(client, hub, body, pending)
    began = last = now
    first = !pending.empty?
    begun = false
    loop do
      bytes = read(hub, client, [body.due(now), left(began, last)].compact.min)
      return if bytes == :gone || (bytes == :nothing && left(began, last)&.<=(0))
      # The hub's first line is there at once; what a missing flush waits for is what comes behind it.
      if first && !begun && bytes.is_a?(String) && bytes.match?(/\A[:\n]+\z/)
        begun = true
        pending << bytes
        next
      end
      out = bytes.is_a?(String) ? body.pass(bytes, now) : body.late(now)
      last = now if bytes.is_a?(String)
      next if out.nil? || (out.empty? && !first) || deaf?(began)
      client.write(pending + out)
      pending = +""
      first = false
    end
  end

  def left(began, last)
    limits = []
    limits << (@limits[:silence] - (now - last)) if @limits[:silence]
    limits << (@limits[:lifetime] - (now - began)) if @limits[:lifetime]
    limits.min
  end

  def deaf?(began) = @limits[:deaf] && now - began > @limits[:deaf]

  # @return [String, Symbol] bytes, :nothing in this time, or :gone, whoever it is
  def read(hub, client, seconds)
    ready, = IO.select([hub, client.to_io], nil, nil, seconds && [seconds, 0].max)
    return :nothing unless ready
    return :gone if ready.include?(client.to_io) && !ready.include?(hub)
    hub.readpartial(65_536)
  rescue EOFError, SystemCallError
    :gone
  end

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
end
