# frozen_string_literal: true

require "test_helper"
require "hikyaku/http/client"
require "support/availability"
require "support/static_server"

# The client and the servers that are out there.
class HTTPClientServersTest < Minitest::Test
  FILES = Array.new(60) { |i| ["/dir#{i % 3}/#{i}.#{%w[txt gif css js html][i % 5]}", "This is #{i}.\n" * (1 + i * 37 % 400)] }.to_h
    .merge("/large.bin" => "0123456789abcdef" * 40_000, "/empty.txt" => "").freeze
  private_constant :FILES

  StaticServer::PROGRAMS.each do |kind, program|
    test "everything comes from #{kind}, pipelined, and what has not changed is not sent again" do
      skip_unless_available(program) if program
      server = StaticServer.new(kind, FILES)
      client = Hikyaku::HTTP::Client.new(memory: nil, proxy: nil, cache: true)
      begin
        assert_equal FILES["/empty.txt"], client.get(server.url("/empty.txt")).body
        3.times do
          outcomes = client.get(FILES.keys.map { |path| server.url(path) }, headers: {"Cache-Control" => "max-age=0"})
          assert_equal [], outcomes.map(&:error).compact.map(&:message)
          assert_equal FILES.values.map(&:b), outcomes.map(&:body)
        end
        assert_match(/is pipelined/, client.explain(server.url("/")), kind)
        assert(client.get(FILES.keys.first(20).map { |path| server.url(path) }, headers: {"Cache-Control" => "max-age=0"}).all?(&:revalidated?)) unless kind == "webrick"
        assert_equal 404, client.get(server.url("/nothing")).status
        assert_equal FILES["/large.bin"].bytesize, client.open(server.url("/large.bin"), &:read).bytesize
      ensure
        client.close
        server.stop
      end
    end
  end
end
