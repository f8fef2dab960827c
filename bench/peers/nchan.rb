# frozen_string_literal: true

require "etc"
require_relative "../harness/entrant"

module Bench
  # Nchan, the nginx module: Debian's libnginx-mod-nchan, with the configuration beside this file.
  class Nchan < Entrant
    CONFIGURATION = File.join(__dir__, "nchan.conf")
    PACKAGE = "libnginx-mod-nchan"
    MODULES = %w[/usr/lib/nginx/modules /usr/lib64/nginx/modules /usr/share/nginx/modules].freeze
    SPARE_FILES = 500

    def initialize
      super("nchan", "Nchan")
    end

    # Installs the package when it may.
    def prepare
      install unless nginx && nginx_module
      return if nginx && nginx_module
      raise Unavailable, "nginx with Nchan is not installed: apt-get install #{PACKAGE}"
    end

    def command(port, folder, _settings)
      path = File.join(folder, "nginx.conf")
      File.write(path, configuration(port, folder))
      [[nginx, "-p", folder, "-e", File.join(folder, "error.log"), "-c", path], {}]
    end

    # A topic is a number here: the body of a publish is the message and nothing else.
    def speech(match: TOPIC, type: "exact", topics: [match])
      {subscribe_path: "/subscribe?t={t}", publish_path: "/publish?t={t}"}
    end

    # @return [Hash{String => String}] versions, where they can be found out
    def versions
      nchan = `dpkg-query -W -f '${Version}' #{PACKAGE} 2>/dev/null` if find("dpkg-query")
      {"nginx" => (`#{nginx} -v 2>&1`[%r{nginx/(\S+)}, 1] if nginx), "nchan" => nchan}.reject { |_, version| version.to_s.empty? }
    end

    private

    def install
      return unless Process.uid.zero? && find("apt-get")
      warn "installing #{PACKAGE}"
      system({"DEBIAN_FRONTEND" => "noninteractive"}, "apt-get", "install", "--yes", "--no-install-recommends", PACKAGE, out: File::NULL)
    end

    def nginx = find("nginx")

    def nginx_module = MODULES.map { |folder| File.join(folder, "ngx_nchan_module.so") }.find { |path| File.exist?(path) }

    def find(program)
      [*ENV.fetch("PATH", "").split(":"), "/usr/sbin"].map { |folder| File.join(folder, program) }.find { |path| File.executable?(path) }
    end

    def configuration(port, folder)
      files = Process.getrlimit(:NOFILE).last
      values = {
        "user" => (Process.uid.zero? ? "user #{Etc.getpwuid.name} #{Etc.getgrgid.name};" : ""), "module" => nginx_module,
        "files" => files, "connections" => files - SPARE_FILES, "folder" => folder, "port" => port
      }
      File.read(CONFIGURATION).gsub(/{{(\w+)}}/) { values.fetch($1).to_s }
    end
  end

  Entrants.add Nchan.new
end
