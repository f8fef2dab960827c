# frozen_string_literal: true

require "etc"
require "fileutils"
require "open3"
require "tmpdir"

# A PostgreSQL of its own, on a Unix socket in a folder of its own, for as long as the tests run.
class PostgreSQL
  GEMFILE = File.expand_path("../../gemfiles/postgresql.gemfile", __dir__)
  USER = "postgres"
  PATIENCE = 60
  private_constant :USER, :PATIENCE

  class << self
    # @return [String, nil] why there is none; nil if there is
    def missing
      return "PostgreSQL is not installed: apt-get install postgresql libpq-dev" unless folder
      return if gems?
      "the gem pg is not installed: bundle install --gemfile gemfiles/postgresql.gemfile (it takes libpq-dev)"
    end

    # @return [PostgreSQL] stopped when the tests are over
    def shared = @shared ||= new.tap { |server| Minitest.after_run { server.stop } }

    # @return [Hash{String => String}] of processes that talk to it: they have gems that the tests have not
    def environment
      {"BUNDLE_GEMFILE" => GEMFILE, "BUNDLE_PATH" => Bundler.bundle_path.to_s[/\A.*(?=\/ruby\/[\d.]+\z)/]}.compact
    end

    # @return [String, nil] of its programs, which are on nobody's path
    def folder = @folder ||= Dir["/usr/lib/postgresql/*/bin"].max_by { |path| path[/\d+/].to_i } || path_of("initdb")&.then { |path| File.dirname(path) }

    private

    def path_of(program) = ENV["PATH"].split(":").map { |folder| File.join(folder, program) }.find { |path| File.executable?(path) }

    def gems?
      return @gems unless @gems.nil?
      _, status = Open3.capture2e(environment, RbConfig.ruby, "-e", "require 'pg'; require 'active_record'")
      @gems = status.success?
    end
  end

  def initialize
    @folder = Dir.mktmpdir("hikyaku-postgresql")
    FileUtils.chown(USER, nil, @folder) if Process.uid.zero?
    run("initdb", "--auth=trust", "--username=#{USER}", "--no-sync", "--pgdata=#{data}")
    run("pg_ctl", "--pgdata=#{data}", "--wait", "--timeout=#{PATIENCE}", "--log=#{@folder}/log",
      "--options=-k #{@folder} -c listen_addresses='' -c fsync=off", "start")
    @databases = 0
  end

  # @return [String] the URL of a database that is empty
  def database
    name = "test#{@databases += 1}"
    run("createdb", "--host=#{@folder}", "--username=#{USER}", name)
    "postgresql:///#{name}?host=#{@folder}&user=#{USER}&pool=10"
  end

  def stop
    run("pg_ctl", "--pgdata=#{data}", "--mode=immediate", "stop")
  ensure
    FileUtils.rm_rf(@folder)
  end

  private

  def data = File.join(@folder, "data")

  # It refuses to be run by root. Without the output of the server, which would never end.
  def run(program, *arguments)
    command = [File.join(self.class.folder, program), *arguments]
    command = ["setpriv", "--reuid=#{USER}", "--regid=#{USER}", "--clear-groups", *command] if Process.uid.zero?
    output = File.join(Dir.tmpdir, "hikyaku-postgresql-#{Process.pid}")
    system(*command, chdir: "/", out: output, err: [:child, :out]) or raise "#{program} failed: #{File.read(output)}"
  ensure
    FileUtils.rm_f(output) if output
  end
end
