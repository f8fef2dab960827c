# frozen_string_literal: true

require "test_helper"
require "hikyaku/server/open_files"
require "open3"
require "rbconfig"

class ServerOpenFilesTest < Minitest::Test
  OpenFiles = Hikyaku::Server::OpenFiles

  test "the limit is raised as far as it goes" do
    file = File.expand_path("../../lib/hikyaku/server/open_files.rb", __dir__)
    out, status = Open3.capture2(RbConfig.ruby, "-r", file, "-e", <<~RUBY)
      hard = Process.getrlimit(:NOFILE).last
      Process.setrlimit(:NOFILE, 200, [hard, 500].min)
      print Hikyaku::Server::OpenFiles.raise_limit, " ", Process.getrlimit(:NOFILE).first
    RUBY
    assert status.success?
    assert_equal "500 500", out
  end

  test "some files are left for other purposes, but most are for subscribers" do
    assert_equal 20_000 - 256, OpenFiles.for_subscribers(20_000)
    assert_equal 768, OpenFiles.for_subscribers(1024)
    assert_equal 48, OpenFiles.for_subscribers(64)
  end
end
