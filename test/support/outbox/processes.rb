# frozen_string_literal: true

require "fileutils"
require "tmpdir"
require_relative "../client_process"
require_relative "../http_client"
require_relative "forked_process"

# Processes of test/support/outbox/application.rb. Who includes this says `database_url`, of a database with the tables or of
# one in which `migrate` makes them, and perhaps what else is in their environment.
module OutboxProcesses
  APPLICATION = File.expand_path("application.rb", __dir__)
  GEMS = %w[BUNDLE_GEMFILE BUNDLE_PATH].freeze
  LIB = File.expand_path("../../../lib", __dir__)
  PATIENCE = 180

  def setup
    super
    @folder = Dir.mktmpdir("hikyaku-outbox")
    @processes = []
  end

  def teardown
    @processes&.each(&:close)
    FileUtils.rm_rf(@folder) if @folder
    super
  end

  def environment = {}

  # @return [ClientProcess] that does one of the application's tasks
  def process(*task, **env)
    brood = ForkedProcess::Brood.of(database_url[/\A\w+/], environment.slice(*GEMS))
    ForkedProcess.new(brood, task.map(&:to_s), env: settings(env), folder: @folder).tap { |process| @processes << process }
  end

  # @return [ClientProcess] the application behind Puma
  def serve(port, *flags, **env)
    File.write(File.join(@folder, "config.ru"), "require #{APPLICATION.inspect}\nrun Rails.application\nRails.application.load_server\n")
    spawned("puma", "--environment", "production", "--bind", "tcp://127.0.0.1:#{port}", *flags, env: {SERVED: "1", RUBYLIB: [LIB, ENV["RUBYLIB"]].compact.join(":"), **env})
  end

  def migrate
    migration = process(:migrate)
    assert migration.status(PATIENCE).success?, migration.errors
  end

  def await(what, seconds: PATIENCE)
    deadline = HttpClient.now + seconds
    until (value = yield)
      flunk "waited too long for #{what}" if HttpClient.now > deadline
      sleep 0.02
    end
    value
  end

  private

  def settings(env)
    {"DATABASE_URL" => database_url, "OUTBOX_FOLDER" => @folder, "RAILS_ENV" => "production", **environment, **env.transform_keys(&:to_s)}
  end

  def spawned(*command, env:)
    ClientProcess.new(*command, env: settings(env), chdir: @folder).tap { |process| @processes << process }
  end

  # SQLite's: a file that is made once, and copied.
  module InSQLite
    class << self
      attr_accessor :template
    end

    def setup
      super
      return FileUtils.cp(InSQLite.template, database) if InSQLite.template
      migrate
      folder = Dir.mktmpdir("hikyaku-outbox")
      Minitest.after_run { FileUtils.rm_rf(folder) }
      # Closed in order, it is one file.
      InSQLite.template = File.join(folder, "template.sqlite3").tap { |template| FileUtils.cp(database, template) }
    end

    # A transaction that reads first, if only the columns of a table, and then writes would fail at once, whatever its timeout,
    # when a courier has written in between: it waits for its turn when it begins, as it does by default from Rails 8 on.
    def database_url = "sqlite3:#{database}?timeout=10000&pool=10&default_transaction_mode=immediate"

    private

    def database = File.join(@folder, "sales.sqlite3")
  end
end
