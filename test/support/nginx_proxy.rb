# frozen_string_literal: true

require "etc"
require "fileutils"
require "openssl"
require "socket"
require "tmpdir"
require_relative "availability"
require_relative "awaited_process"
require_relative "free_port"

# nginx with the configuration that docs/guides/nginx.conf shows, in a folder of its own, on free ports, as the user who
# runs the tests. Only addresses, names and paths are replaced.
class NginxProxy
  include AwaitedProcess

  CONFIGURATION = File.expand_path("../../docs/guides/nginx.conf", __dir__)
  PATIENCE = 180
  private_constant :CONFIGURATION, :PATIENCE

  # @return [Integer] with TLS
  attr_reader :port
  # @return [Integer] without
  attr_reader :plain_port
  # @return [String] the host name, which resolves to the loopback only where a client is told so
  attr_reader :name

  # @param hub [String] where the hub listens, HOST:PORT or unix:PATH
  # @param name [String]
  # @yieldparam text [String] the configuration, to be changed further
  def initialize(hub, name: "hub.test", port: NginxProxy.free_port)
    @folder = Dir.mktmpdir("hikyaku-nginx")
    @name = name
    @port = port
    @plain_port = NginxProxy.free_port
    make_certificate
    text = localize(File.read(CONFIGURATION), hub)
    text = yield text if block_given?
    File.write(path("hikyaku.conf"), text)
    File.write(path("nginx.conf"), main)
    start
  end

  def self.free_port = FreePort.pick

  def url = "https://#{name}:#{port}/.well-known/mercure"

  # @return [String] of the certificate that it shows, for a client to trust
  def certificate = path("hub.crt")

  def access_log = File.read(path("access.log"))

  def error_log = File.read(path("error.log"))

  def stop
    return unless @pid
    Process.kill("TERM", @pid)
    await_end("nginx", PATIENCE)
  ensure
    FileUtils.rm_rf(@folder)
  end

  private

  def path(name) = File.join(@folder, name)

  def make_certificate
    key = path("hub.key")
    command = [Availability.path_of("openssl"), "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
      "-keyout", key, "-out", certificate, "-days", "2", "-subj", "/CN=#{name}", "-addext", "subjectAltName=DNS:#{name},IP:127.0.0.1"]
    system(*command, out: File::NULL, err: File::NULL) || raise("no certificate could be made: #{command.join(" ")}")
  end

  def localize(text, hub)
    {
      "server 127.0.0.1:3030;" => "server #{hub};",
      "listen 80;" => "listen 127.0.0.1:#{plain_port};",
      "listen 443 ssl http2;" => "listen 127.0.0.1:#{port} ssl http2;",
      "hub.example.com;" => "#{name};",
      "https://$host$request_uri" => "https://$host:#{port}$request_uri",
      "/etc/ssl/hub.example.com.crt" => certificate,
      "/etc/ssl/hub.example.com.key" => path("hub.key"),
      "/var/log/nginx/hikyaku.log" => path("access.log")
    }.reduce(text) do |result, (here, there)|
      result.include?(here) ? result.gsub(here, there) : raise("docs/guides/nginx.conf does not say #{here.inspect}")
    end
  end

  # What a system's nginx.conf has already.
  def main
    temporary = %w[client_body proxy fastcgi uwsgi scgi].map { |name| "    #{name}_temp_path #{path("tmp-#{name}")};" }.join("\n")
    <<~CONF
      #{"user #{Etc.getpwuid.name} #{Etc.getgrgid.name};" if Process.uid.zero?}
      daemon off;
      worker_processes 1;
      pid #{path("nginx.pid")};
      events {
          worker_connections 512;
      }
      http {
      #{temporary}
          include #{path("hikyaku.conf")};
      }
    CONF
  end

  def start
    nginx = Availability.path_of("nginx")
    @pid = Process.spawn(nginx, "-p", @folder, "-e", path("error.log"), "-c", path("nginx.conf"), out: path("out.log"), err: [:child, :out], in: File::NULL)
    deadline = now + PATIENCE
    until listening?
      if now > deadline || Process.wait(@pid, Process::WNOHANG)
        raise "nginx did not start: #{log}"
      end
      sleep 0.02
    end
  end

  def listening?
    TCPSocket.new("127.0.0.1", port).close
    true
  rescue Errno::ECONNREFUSED
    false
  end

  def log = %w[out.log error.log].map { |name| File.exist?(path(name)) ? File.read(path(name)) : "" }.join
end
