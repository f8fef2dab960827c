# frozen_string_literal: true

# A Rails application with an outbox, for processes that are killed. Not the example: nothing but what the tests need. What
# it is told by its environment:
#
#     DATABASE_URL   OUTBOX_FOLDER
#     HUB            see config.hikyaku.hub; without it the server holds the hub itself
#     DIES           before or after: it kills itself, at once, before or after the publish of a row of the topic FATAL;
#                    commit: when the transaction in which a sale was made has been committed, before anything else is done
#     BROADCASTS     1: Sale declares what turbo-rails broadcasts
require "logger"
require "rails"
require "active_record/railtie"
%w[action_controller/railtie action_view/railtie active_job/railtie turbo-rails].each { |library| require library } if ENV["BROADCASTS"]
require "hikyaku"

class OutboxApplication < Rails::Application
  config.root = ENV.fetch("OUTBOX_FOLDER")
  config.load_defaults 7.1
  config.eager_load = false
  config.secret_key_base = "s" * 64
  config.logger = Logger.new($stderr)
  config.log_level = :info
  # Rails 7.1 would say that SQLite is not for production.
  config.active_record.sqlite3_production_warning = false if Rails.version.start_with?("7.1")
  config.hikyaku.hub = ENV["HUB"]
  config.hikyaku.publisher_key = Hikyaku::Config::Settings::DEVELOPMENT_SECRET
  config.hikyaku.resource_identifier = ENV["HUB"] || "http://localhost/.well-known/mercure"
  config.hikyaku.anonymous = true
  config.hikyaku.outbox = true
  config.hikyaku.turbo = !ENV["BROADCASTS"].nil?
end

# Put before the outbox: the process ends as by a loss of power, at a place of the test's choice.
module Dying
  private

  def carry(row)
    die if ENV["DIES"] == "before" && row.topics.first == ENV["FATAL"]
    super
    die if ENV["DIES"] == "after" && row.topics.first == ENV["FATAL"]
  end

  module_function

  def die
    Process.kill(:KILL, Process.pid)
    sleep
  end
end
Hikyaku::Outbox.prepend(Dying)

OutboxApplication.initialize!
OutboxApplication.routes.draw { hikyaku }
$stdout.sync = true

class Sale < ActiveRecord::Base
  # Stands before what is declared: whoever announces a sale after its commit does it too late.
  after_commit { Dying.die } if ENV["DIES"] == "commit"
  broadcasts_to ->(sale) { sale.title } if ENV["BROADCASTS"]
end

# What renders for turbo-rails.
if ENV["BROADCASTS"]
  class ApplicationController < ActionController::Base
  end
end

# What processes are started to do.
module Tasks
  module_function

  # Makes the tables.
  def migrate
    require "erb"
    require "generators/hikyaku/outbox/outbox_generator"
    folder = Hikyaku::Generators::OutboxGenerator.source_root
    migration_version = "[#{ActiveRecord::Migration.current_version}]"
    Object.class_eval(ERB.new(File.read(File.join(folder, "create_hikyaku_outbox.rb.tt"))).result_with_hash(migration_version: migration_version))
    ActiveRecord::Migration.suppress_messages do
      CreateHikyakuOutbox.new.migrate(:up)
      ActiveRecord::Schema.define { create_table(:sales) { |t| t.string :title } }
    end
  end

  # One transaction, and then the courier has its time.
  def sell(*topics)
    Sale.transaction { topics.each { |topic| Sale.create!(title: topic) and Hikyaku.publish(topic, topic, private: false) } }
    puts "committed"
    sleep
  end

  # One transaction of which each sale is announced by its model, as it is at the end.
  def announce(*titles)
    Sale.transaction do
      sales = titles.map { |title| Sale.create!(title: title) }
      Sale.transaction(requires_new: true) { Sale.create!(title: "rolled back") and raise ActiveRecord::Rollback }
      sales.last.update!(title: "#{titles.last} again")
    end
    puts "committed"
    sleep
  end

  # Transactions without end, some of them rolled back; says which were committed.
  def trade(name)
    random = Random.new
    (1..).each do |n|
      Sale.transaction do
        Sale.create!(title: "#{name}/#{n}")
        Hikyaku.publish("/sales/#{name}", "#{name} #{n}a")
        if random.rand < 0.2
          Hikyaku.publish("/sales/#{name}", "#{name} #{n} rolled back")
          raise ActiveRecord::Rollback
        end
        Sale.transaction(requires_new: true) do
          Hikyaku.publish("/sales/#{name}", "#{name} #{n} rolled back too")
          raise ActiveRecord::Rollback
        end
        Hikyaku.publish("/sales/#{name}", "#{name} #{n}b")
      end
      puts n if Sale.exists?(title: "#{name}/#{n}")
    rescue ActiveRecord::StatementInvalid, ActiveRecord::ConnectionNotEstablished => error
      warn error.message # a database that is busy: the transaction was rolled back
    end
  end

  # Works until nothing waits.
  def empty
    Hikyaku::Outbox.current.serve
    sleep 0.05 until Hikyaku::Outbox.current.stats.waiting.zero?
    puts "empty"
  end

  # `bin/rails hikyaku:outbox`
  def carry
    require "hikyaku/rails/railtie/outbox_task"
    puts "carrying"
    Hikyaku::Railtie::OutboxTask.run
    puts "ended"
  end
end

Tasks.public_send(*ARGV) unless ENV["SERVED"]
