# frozen_string_literal: true

require "support/integration"
require "hikyaku/config"
require "open3"
require "support/rails_server"
require "support/snippets"
require "yaml"

# What docs/guides/deployment.md says of Kamal: Kamal itself reads the configuration, the hub starts with the accessory's settings, and
# an application with the initializer publishes there.
class DeploymentGuideTest < Integration::Test
  GUIDE = "docs/guides/deployment.md"
  CONFIGURATIONS = Snippets.of(GUIDE).map(&:code).grep(%r{\A# config/deploy\.yml}).map { |text| YAML.safe_load(text) }.freeze
  INITIALIZER = "config/initializers/hikyaku.rb"
  SECRETS = {"HIKYAKU_PUBLISHER_KEY" => "p" * 32, "HIKYAKU_SUBSCRIBER_KEY" => "s" * 32}.freeze
  # What Kamal would tell its proxy and Docker, from Kamal's own classes.
  TOLD = <<~RUBY
    require "kamal"
    require "json"
    config = Kamal::Configuration.create_from(config_file: Pathname(ARGV.first), version: "1")
    hub = config.accessory("hub")
    puts JSON.generate(application: config.proxy.deploy_options, drain: config.drain_timeout, clear: config.role("web").env("203.0.113.10").clear,
      hub: {name: hub.service_name, cmd: hub.cmd, port: hub.proxy.app_port, folders: hub.directories.values.map { |each| each[:container_path] },
            clear: hub.env.clear, secret: hub.env.secret_keys, proxy: hub.proxy.deploy_options})
  RUBY

  def setup
    super
    assert_equal 2, CONFIGURATIONS.size
    @folder = Dir.mktmpdir("hikyaku-kamal")
  end

  def teardown
    super
    FileUtils.rm_rf(@folder)
  end

  test "Kamal takes both configurations, and not one with a key that it does not know" do
    alone, beside = CONFIGURATIONS
    [alone, together].each do |configuration|
      output, status = kamal(configuration)
      assert status.success?, output
    end
    misspelt = beside["accessories"]["hub"].then { |hub| hub.merge("proxy" => hub["proxy"].transform_keys("path_prefixes" => "paths")) }
    output, status = kamal(together.merge("accessories" => {"hub" => misspelt}))
    refute status.success?
    assert_match(%r{accessories/hub/proxy: unknown key: paths}, output)
  end

  test "the proxy is told to bring all of the hub's paths to it, as they are, and the application finds it by its name" do
    told = told_by_kamal
    hub = told["hub"]
    assert_equal "5s", told.dig("application", "drain-timeout")
    path = URI(hub["clear"]["HIKYAKU_RESOURCE_IDENTIFIER"]).path
    assert_equal [path, "/.well-known/oauth-protected-resource#{path}"], hub["proxy"]["path-prefix"]
    assert_equal [false, false, "/readyz"], hub["proxy"].values_at("strip-path-prefix", "forward-headers", "health-check-path")
    assert_equal told["application"]["host"], hub["proxy"]["host"]
    assert_equal "http://#{hub["name"]}:#{hub["port"]}#{path}", told["clear"]["HIKYAKU_HUB"]
    assert_equal ":#{hub["port"]}", hub["clear"]["HIKYAKU_LISTEN"]
    assert_equal [hub["clear"]["HIKYAKU_STORAGE"]], hub["folders"]
    assert_equal SECRETS.keys, hub["secret"]
    # A variable that the hub does not know would say nothing.
    assert_equal [], hub["clear"].keys + hub["secret"] - Hikyaku::Config::Settings::ALL.flat_map(&:variables)
    assert_equal [], SECRETS.keys - together["env"]["secret"]
  end

  test "the hub starts as the accessory does, and an application with the initializer publishes there" do
    hub = told_by_kamal["hub"]
    port = start_accessory(hub)
    application = RailsServer::Folder.new({INITIALIZER => Snippets.files(GUIDE).fetch(INITIALIZER)})
    identifier = hub["clear"]["HIKYAKU_RESOURCE_IDENTIFIER"]
    output, status = application.run("bin/rails", "runner", 'Hikyaku.publish("/books/1", "3 left")',
      HIKYAKU_HUB: "http://127.0.0.1:#{port}#{URI(identifier).path}", **SECRETS.transform_keys(&:to_sym))
    assert status.success?, output
    stream = ending(HttpClient.new(port).stream("GET", "#{URI(identifier).path}?match=/books/1&last_event_id=earliest"))
    assert_equal "3 left", stream.next.data
  ensure
    application&.remove
  end

  private

  # The second block stands beside the first: its keys replace the first one's.
  def together = CONFIGURATIONS.reduce(:merge)

  def write(configuration) = File.join(@folder, "deploy.yml").tap { |path| File.write(path, YAML.dump(configuration)) }

  def kamal(configuration) = run_here("kamal", "config", "--version", "1", "--config-file", write(configuration))

  def told_by_kamal
    output, status = run_here(RbConfig.ruby, "-e", TOLD, write(together))
    assert status.success?, output
    JSON.parse(output)
  end

  def run_here(*command) = Open3.capture2e(*command, chdir: @folder)

  # @return [Integer] the port at which a hub answers that has all that the accessory's has, but for this machine's port and folder
  def start_accessory(hub)
    port = free_port
    env = hub["clear"].merge(SECRETS, "HIKYAKU_LISTEN" => "127.0.0.1:#{port}", "HIKYAKU_STORAGE" => File.join(@folder, "journal"))
    process = run_client(*hub["cmd"].split, env: env)
    eventually("the hub: #{process.errors[0, 500]}") { ready?(port, hub["proxy"]["health-check-path"]) }
    port
  end

  def ready?(port, path)
    HttpClient.new(port).request("GET", path).status == 200
  rescue SystemCallError, EOFError
    false
  end
end
