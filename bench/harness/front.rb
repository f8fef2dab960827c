# frozen_string_literal: true

require "etc"
require "open3"
require "openssl"
require "tmpdir"
require_relative "debian_folder"
require_relative "server"

module Bench
  # What stands in front of a server, with TLS: an empty page at /, and all else passed on. Its configuration is a file of
  # bench/fronts with names in double braces.
  class Front
    HOST = "front.bench" # of its certificate
    FOLDER = File.expand_path("../fronts", __dir__)

    # It cannot be had; the message says why.
    class Unavailable < StandardError
    end

    # nginx, as Debian has it.
    class Nginx < Front
      def title = "nginx"

      def prepare = program("nginx") || raise(Unavailable, "nginx is not installed: apt-get install nginx")

      def versions = {"nginx" => Open3.capture2e(prepare, "-v").first[%r{nginx/(\S+)}, 1]}

      private

      def template = "nginx.conf"

      def command(folder, path) = [prepare, "-p", folder, "-e", File.join(folder, "error.log"), "-c", path]
    end

    # Caddy of a newer Debian than this machine's, in a folder. It speaks HTTP/3.
    class Caddy < Front
      RELEASE = DebianFolder.new("trixie")

      def title = "Caddy"

      def prepare
        @prepare ||= RELEASE.fetch("caddy", "usr/bin/caddy")
      rescue DebianFolder::Unavailable => error
        raise Unavailable, error.message
      end

      def versions = {"caddy" => RELEASE.version("caddy")}

      private

      def template = "Caddyfile"

      def command(_folder, path) = [prepare, "run", "--adapter", "caddyfile", "--config", path]
    end

    ALL = {"nginx" => Nginx, "caddy" => Caddy}.freeze

    # Starts it at the server's end of a link, and stops it.
    #
    # @param link [ShapedLink]
    # @param behind [Server] what it stands in front of
    # @yieldparam server [Server] its own
    # @return what the block returns
    def run(link, behind)
      Dir.mktmpdir("bench-front") do |folder|
        File.chmod(0o755, folder)
        port = Server.free_port
        path = File.join(folder, template)
        File.write(path, configuration(folder, "address" => link.host, "port" => port, "server" => "#{link.host}:#{behind.port}"))
        Server.run(command(folder, path), port: port, env: {"HOME" => folder, "XDG_DATA_HOME" => folder}, within: link.broker) { |server| yield server }
      end
    end

    # @return [String] by which a browser is told that this certificate is good: of its public key
    def fingerprint = [OpenSSL::Digest::SHA256.digest(key.public_to_der)].pack("m0")

    # @return [void]
    # @raise [Unavailable]
    def prepare = raise(NotImplementedError)

    private

    def configuration(folder, values)
      certificate, secret = {"certificate.pem" => self.certificate.to_pem, "key.pem" => key.to_pem}.map do |name, text|
        File.join(folder, name).tap { |path| File.write(path, text, perm: 0o600) }
      end
      user = Process.uid.zero? ? "user #{Etc.getpwuid.name} #{Etc.getgrgid.name};" : ""
      all = {"folder" => folder, "host" => HOST, "certificate" => certificate, "key" => secret, "user" => user, **values}
      File.read(File.join(FOLDER, template)).gsub(/{{(\w+)}}/) { all.fetch($1).to_s }
    end

    def key = @key ||= OpenSSL::PKey::EC.generate("prime256v1")

    def certificate
      made = OpenSSL::X509::Certificate.new
      made.version = 2
      made.serial = 1
      made.subject = made.issuer = OpenSSL::X509::Name.parse("/CN=#{HOST}")
      made.public_key = key
      made.not_before = Time.now - 3_600
      made.not_after = Time.now + 86_400
      made.add_extension(OpenSSL::X509::ExtensionFactory.new.create_extension("subjectAltName", "DNS:#{HOST}"))
      made.sign(key, "SHA256")
    end

    def program(name)
      [*ENV.fetch("PATH", "").split(":"), "/usr/sbin"].map { |folder| File.join(folder, name) }.find { |path| File.executable?(path) }
    end
  end
end
