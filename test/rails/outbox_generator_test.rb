# frozen_string_literal: true

require "test_helper"
require "support/rails_application"
require "generators/hikyaku/install/install_generator"
require "generators/hikyaku/outbox/outbox_generator"

# `bin/rails generate hikyaku:outbox`
class OutboxGeneratorTest < Minitest::Test
  def setup
    @folder = Dir.mktmpdir("hikyaku-generator")
  end

  def teardown = FileUtils.rm_rf(@folder)

  test "the migration is made, for the version of Rails that is there" do
    output = generate
    assert_match(/\Aclass CreateHikyakuOutbox < ActiveRecord::Migration\[#{ActiveRecord::Migration.current_version}\]\n/, migration.lines.grep_v(/^#/).join)
    assert_match(/create_table :hikyaku_outbox/, migration)
    assert_match(/Set config\.hikyaku\.outbox = true/, output)
    assert_match(/db:migrate/, output)
  end

  test "an initializer that is there gets the switch; a second time changes nothing" do
    FileUtils.mkdir_p(File.join(@folder, "config"))
    File.write(File.join(@folder, "config/routes.rb"), "Rails.application.routes.draw do\nend\n")
    capture_io { Hikyaku::Generators::InstallGenerator.start([], destination_root: @folder) }
    2.times { generate }
    initializer = File.read(File.join(@folder, "config/initializers/hikyaku.rb"))
    assert_equal 1, initializer.scan("config.hikyaku.outbox = true").size
    assert_match(/^Rails\.application\.configure do\n  # .*\n  config\.hikyaku\.outbox = true\n/, initializer)
    assert system(RbConfig.ruby, "-c", File.join(@folder, "config/initializers/hikyaku.rb"), out: File::NULL)
    assert_equal 1, Dir["#{@folder}/db/migrate/*"].size
  end

  private

  def generate
    out, = capture_io { Hikyaku::Generators::OutboxGenerator.start([], destination_root: @folder) }
    out
  end

  def migration = File.read(Dir["#{@folder}/db/migrate/*_create_hikyaku_outbox.rb"].fetch(0))
end
