# frozen_string_literal: true

require "etc"
require "fileutils"
require "rbconfig"
require "socket"
require "tmpdir"
require_relative "availability"
require_relative "awaited_process"
require_relative "free_port"

# A real web server that serves the files of a folder, on a free port of the loopback, as the user who runs the tests.
#
#     server = StaticServer.new("lighttpd", "/a.txt" => "hello")
#     server.url("/a.txt")
#     server.stop
class StaticServer
  include AwaitedProcess

  # What each is called where it is installed.
  PROGRAMS = {"nginx" => "nginx", "apache" => "apache2", "lighttpd" => "lighttpd", "h2o" => "h2o", "puma" => nil, "webrick" => nil}.freeze
  MODULES = "/usr/lib/apache2/modules"
  PATIENCE = 180
  private_constant :MODULES, :PATIENCE

  # @return [Integer]
  attr_reader :port

  # @param kind [String] a key of PROGRAMS
  # @param files [Hash{String => String}] contents by path
  def initialize(kind, files)
    @kind = kind
    @port = FreePort.pick
    @folder = Dir.mktmpdir("hikyaku-static")
    files.each do |path, content|
      FileUtils.mkdir_p(File.dirname(root(path)))
      File.binwrite(root(path), content)
    end
    FileUtils.chmod("a+rx", @folder)
    start
  end

  def url(path) = "http://127.0.0.1:#{port}#{path}"

  def stop
    return unless @pid
    Process.kill("TERM", @pid)
    await_end(@kind, PATIENCE)
  ensure
    FileUtils.rm_rf(@folder)
  end

  private

  def path(name) = File.join(@folder, name)

  def root(name = "") = File.join(@folder, "files", name)

  def program = Availability.path_of(PROGRAMS.fetch(@kind))

  def command = send(@kind)

  def nginx
    temporary = %w[client_body proxy fastcgi uwsgi scgi].map { |name| "#{name}_temp_path #{path("tmp-#{name}")};" }.join(" ")
    File.write(path("conf"), <<~CONF)
      #{"user #{Etc.getpwuid.name} #{Etc.getgrgid.name};" if Process.uid.zero?}
      daemon off; worker_processes 1; pid #{path("pid")};
      events { worker_connections 256; }
      http { #{temporary} access_log off; server { listen 127.0.0.1:#{port}; root #{root}; } }
    CONF
    [program, "-p", @folder, "-e", path("error.log"), "-c", path("conf")]
  end

  def apache
    user = Process.uid.zero? ? "User www-data\nGroup www-data" : ""
    File.write(path("conf"), <<~CONF)
      ServerName localhost
      ServerRoot #{@folder}
      LoadModule mpm_event_module #{MODULES}/mod_mpm_event.so
      LoadModule authz_core_module #{MODULES}/mod_authz_core.so
      LoadModule mime_module #{MODULES}/mod_mime.so
      TypesConfig /etc/mime.types
      #{user}
      Listen 127.0.0.1:#{port}
      PidFile #{path("pid")}
      Mutex pthread
      ErrorLog #{path("error.log")}
      DocumentRoot #{root}
      <Directory #{root}>
        Require all granted
      </Directory>
    CONF
    [program, "-d", @folder, "-f", path("conf"), "-D", "FOREGROUND"]
  end

  def lighttpd
    File.write(path("conf"), <<~CONF)
      server.document-root = "#{root}"
      server.bind = "127.0.0.1"
      server.port = #{port}
      server.errorlog = "#{path("error.log")}"
      server.upload-dirs = ( "#{@folder}" )
      # What has no type has no validators here, either.
      mimetype.assign = ( "" => "application/octet-stream" )
    CONF
    [program, "-D", "-f", path("conf")]
  end

  def h2o
    File.write(path("conf"), <<~CONF)
      #{"user: #{Etc.getpwuid.name}" if Process.uid.zero?}
      num-threads: 1
      error-log: #{path("error.log")}
      listen:
        host: 127.0.0.1
        port: #{port}
      hosts:
        default:
          paths:
            /:
              file.dir: #{root}
    CONF
    [program, "-c", path("conf")]
  end

  def puma
    File.write(path("config.ru"), %(require "rack/files"\nrun Rack::Files.new("#{root}")\n))
    [RbConfig.ruby, "-rbundler/setup", "-S", "puma", "-b", "tcp://127.0.0.1:#{port}", "-t", "2:2", path("config.ru")]
  end

  def webrick
    code = %(require "webrick"; WEBrick::HTTPServer.new(BindAddress: "127.0.0.1", Port: #{port}, DocumentRoot: "#{root}", AccessLog: []).start)
    [RbConfig.ruby, "-rbundler/setup", "-e", code]
  end

  def start
    @pid = Process.spawn(*command, out: path("out.log"), err: [:child, :out], in: File::NULL)
    deadline = now + PATIENCE
    until listening?
      raise "#{@kind} did not start: #{log}" if now > deadline || Process.wait(@pid, Process::WNOHANG)
      sleep 0.02
    end
  end

  def listening?
    TCPSocket.new("127.0.0.1", port).close
    true
  rescue Errno::ECONNREFUSED
    false
  end

  def log = File.read(path("out.log"))
end
