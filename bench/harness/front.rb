# frozen_string_literal: true

require "etc"
require "openssl"
require "tmpdir"
require_relative "dependencies"
require_relative "server"

module Bench
  # nginx or Caddy with a configuration of bench/fronts, whose names in double braces are filled in. It has a certificate of its own.
  class Front
    HOST = "front.bench" # of the certificate
    FOLDER = File.expand_path("../fronts", __dir__)
    CADDY = DebianPackage.new("caddy", "caddy")

    # @param template [String] a file of bench/fronts
    def initialize(template)
      @template = template
      @caddy = template == "Caddyfile"
    end

    def title = @caddy ? "Caddy" : "nginx"

    def prepare = @caddy ? CADDY.prepare : DebianPackage.find("nginx") || raise(Unavailable, "nginx is not installed: apt-get install nginx")

    def versions = @caddy ? CADDY.versions : {"nginx" => Open3.capture2e(DebianPackage.find("nginx"), "-v").first[%r{nginx/(\S+)}, 1]}

    # Starts it, yields once it listens, and stops it.
    #
    # @param values [Hash{String => Object}] "address" and others of the template
    # @yieldparam server [Server]
    # @yieldparam folder [String]
    def run(values, within: [])
      Dir.mktmpdir("bench-front") do |folder|
        File.chmod(0o755, folder)
        values = {"port" => Server.free_port, **values}
        path = File.join(folder, File.basename(@template))
        File.write(path, configuration(folder, values))
        command = @caddy ? %w[caddy run --adapter caddyfile --config] : [DebianPackage.find("nginx"), "-p", folder, "-e", File.join(folder, "error.log"), "-c"]
        Server.run([*command, path], port: values.fetch("port"), env: {"HOME" => folder, "XDG_DATA_HOME" => folder}, within: within) { |server| yield server, folder }
      end
    end

    # The digest of the public key, by which a browser accepts the certificate.
    def fingerprint = [OpenSSL::Digest::SHA256.digest(key.public_to_der)].pack("m0")

    def configuration(folder, values)
      certificate, secret = {"certificate.pem" => self.certificate.to_pem, "key.pem" => key.to_pem}.map do |name, text|
        File.join(folder, name).tap { |path| File.write(path, text, perm: 0o600) }
      end
      user = Process.uid.zero? ? "user #{Etc.getpwuid.name} #{Etc.getgrgid.name};" : ""
      all = {"folder" => folder, "host" => HOST, "certificate" => certificate, "key" => secret, "user" => user, **values}
      File.read(File.join(FOLDER, @template)).gsub(/{{(\w+)}}/) { all.fetch($1).to_s }
    end

    private

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
  end
end
