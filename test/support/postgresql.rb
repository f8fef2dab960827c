# frozen_string_literal: true

require "etc"
require "fileutils"
require "open3"
require "rbconfig"
require "tmpdir"

# A PostgreSQL of its own, on a Unix socket in a folder of its own, for as long as the tests run. What the system may have of its
# own is neither used nor touched.
class PostgreSQL
  GEMFILE = File.expand_path("../../gemfiles/postgresql.gemfile", __dir__)
  # It refuses to be run by root.
  USER = "postgres"
  PATIENCE = 180
  private_constant :USER, :PATIENCE

  class << self
    # @return [String, nil] why there is none; nil if there is
    def missing
      return "PostgreSQL is not installed: bin/setup --tests" unless folder
      return "root may not run PostgreSQL, and there is no user #{USER}" if Process.uid.zero? && !user?
      "the gem pg is not installed: bin/setup --tests" unless gems?
    end

    # @return [PostgreSQL] stopped when the tests are over
    def shared = @shared ||= new.tap { |server| Minitest.after_run { server.stop } }

    # @return [Hash{String => String}] of processes that talk to it: they have gems that the tests have not
    def environment
      {"BUNDLE_GEMFILE" => GEMFILE, "BUNDLE_PATH" => Bundler.bundle_path.to_s[/\A.*(?=\/ruby\/[\d.]+\z)/]}.compact
    end

    # @return [String, nil] of its programs, which in Debian are on nobody's path
    def folder = @folder ||= Dir["/usr/lib/postgresql/*/bin"].select { |path| File.executable?("#{path}/initdb") }.max_by { |path| path[/\d+/].to_i } || folder_on_path

    private

    def folder_on_path = ENV["PATH"].split(":").find { |folder| File.executable?(File.join(folder, "initdb")) }

    def user?
      !!Etc.getpwnam(USER)
    rescue ArgumentError
      false
    end

    def gems?
      return @gems unless @gems.nil?
      _, status = Open3.capture2e(environment, RbConfig.ruby, "-e", "require 'pg'")
      @gems = status.success?
    end
  end

  # @return [Integer] the process that all others of it are children of
  attr_reader :pid

  def initialize
    @folder = Dir.mktmpdir("hikyaku-postgresql")
    FileUtils.chown(USER, nil, @folder) if Process.uid.zero?
    @databases = 0
    run("initdb", "--auth=trust", "--username=#{USER}", "--locale=C", "--encoding=UTF8", "--no-sync", "--pgdata=#{data}")
    # A child, which pg_ctl would not make of it: whoever ends the group of these processes ends it too. Nothing is synced, as no test
    # turns off the machine.
    @pid = Process.spawn(*as_user("postgres", "-D", data, "-k", @folder, "-c", "listen_addresses=", "-c", "fsync=off"),
      chdir: "/", in: File::NULL, out: log, err: [:child, :out])
    await
  rescue
    stop
    raise
  end

  # @param template [String] the name of the database that it is a copy of; nobody may use that one
  # @return [String] the name of a new database
  def database(template: "template1")
    "test#{@databases += 1}".tap { |name| run("createdb", "--host=#{@folder}", "--username=#{USER}", "--template=#{template}", name) }
  end

  # @param name [String] of a database
  # @return [String] its URL
  def url(name) = "postgresql:///#{name}?host=#{@folder}&user=#{USER}&pool=10"

  # @param name [String] of a database
  # @param sql [String]
  # @return [Array<String>] the rows, their columns joined with "|"
  def query(name, sql)
    run("psql", "--host=#{@folder}", "--username=#{USER}", "--no-psqlrc", "--no-align", "--tuples-only", "--command=#{sql}", name).lines(chomp: true)
  end

  # Ends it at once, with all who are connected.
  def stop
    return unless @folder
    Process.kill(:QUIT, @pid) if @pid
    sleep 0.01 until ended?
  ensure
    FileUtils.rm_rf(@folder) if @folder
    @folder = nil
  end

  private

  def data = File.join(@folder, "data")

  def log = File.join(@folder, "log")

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

  def ended?
    @pid = nil if @pid && Process.wait(@pid, Process::WNOHANG)
    @pid.nil?
  end

  def await
    deadline = now + PATIENCE
    until system(*as_user("pg_isready", "--host=#{@folder}", "--quiet"), chdir: "/")
      raise "PostgreSQL did not start: #{File.read(log)}" if ended? || now > deadline
      sleep 0.05
    end
  end

  def as_user(program, *arguments)
    command = [File.join(self.class.folder, program), *arguments]
    Process.uid.zero? ? ["setpriv", "--reuid=#{USER}", "--regid=#{USER}", "--clear-groups", *command] : command
  end

  def run(program, *arguments)
    output, status = Open3.capture2e(*as_user(program, *arguments), chdir: "/")
    status.success? ? output : raise("#{program} failed: #{output}")
  end
end
