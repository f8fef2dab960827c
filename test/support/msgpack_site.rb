# frozen_string_literal: true

require_relative "access_tokens"
require_relative "hub_server"

# A hub, and beside it a page without anything, that may import hikyaku-msgpack.js as pages of Rails do: all of one origin.
#
#     site = MsgpackSite.new
#     page.visit(site.url)
class MsgpackSite
  SCRIPTS = File.expand_path("../../app/assets/javascripts", __dir__)
  PAGE = <<~HTML
    <!doctype html><title>page</title>
    <script type="importmap">{"imports": {"hikyaku": "/hikyaku.js", "hikyaku-msgpack": "/hikyaku-msgpack.js"}}</script>
  HTML
  private_constant :SCRIPTS, :PAGE

  # @return [HubServer]
  attr_reader :server

  def initialize = @server = HubServer.new(wrap: ->(web) { ->(env) { web.serves?(env["PATH_INFO"]) ? web.call(env) : answer(env["PATH_INFO"]) } })

  def url = "http://127.0.0.1:#{server.port}/"

  def stop = server.stop

  private

  def answer(path)
    return [200, {"content-type" => "text/html"}, [PAGE]] if path == "/"
    return [204, {}, []] unless %w[/hikyaku.js /hikyaku-msgpack.js].include?(path)
    [200, {"content-type" => "text/javascript"}, [File.read(File.join(SCRIPTS, path))]]
  end
end
