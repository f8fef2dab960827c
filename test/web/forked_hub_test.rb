# frozen_string_literal: true

require "test_helper"
require "hikyaku/config"
require "hikyaku/web"
require "logger"
require "stringio"

# A hub that is found in a process which was forked after it was made (preloading servers do so) is another hub.
class ForkedHubTest < Minitest::Test
  Update = Hikyaku::Hub::Update

  def web(engine) = Hikyaku::Web.new(Hikyaku::Config.new(dev: true, engine: engine), logger: Logger.new(@log = StringIO.new))

  # @return [Array] what the block returned in a forked process
  def in_child
    reader, writer = IO.pipe
    pid = fork do
      reader.close
      Marshal.dump(yield, writer)
      writer.close
      exit!(0)
    end
    writer.close
    Marshal.load(reader.read)
  ensure
    Process.wait(pid)
    reader.close
  end

  def publish(hub, *data, **options) = data.map { |each| hub.publish(Update.new(topics: "/a", data: each), **options) }

  def answer_to(hub, id) = hub.resolve(id, Hikyaku::Hub::Grant.new(matchers: [hub.matcher("exact", "/a")]))

  %w[c ruby].each do |engine|
    test "the same id never means two events, and what another process published is not taken for known (#{engine})" do
      hub = web(engine).hub
      before = publish(hub, "before").first
      first = in_child { publish(hub, "1", "2") }
      second, answers = in_child { [publish(hub, "3", "4"), [before, *first].map { |id| answer_to(hub, id) }] }
      own = publish(hub, "5", "6")
      assert_equal 6, [*first, *second, *own].uniq.size
      assert_equal ["earliest"] * 3, answers
      assert_equal before, answer_to(hub, before)
    end

    test "it remembers no idempotency key of its parent's, and says so (#{engine})" do
      web = self.web(engine)
      first = publish(web.hub, "x", idempotency_key: "k").first
      name, (id, again), log = in_child { [web.hub.memory, Array.new(2) { publish(web.hub, "x", idempotency_key: "k").first }, @log.string] }
      refute_equal web.hub.memory, name
      refute_equal first, id
      assert_equal id, again
      assert_equal 1, log.scan("forked").size
      assert_equal [first], publish(web.hub, "x", idempotency_key: "k")
      refute_includes @log.string, "forked"
    end
  end
end
