# frozen_string_literal: true

require "fileutils"
require "open3"
require "rbconfig"
require "tmpdir"

# A library that changes what a process sees of the system, compiled for a test and loaded by LD_PRELOAD.
class Preloaded
  FLAGS = %w[-std=c11 -D_GNU_SOURCE -O2 -fPIC -shared -Wall -Wextra -Werror].freeze
  COMPILER = ENV["CC"] || RbConfig::CONFIG["CC"]
  private_constant :FLAGS, :COMPILER

  # @return [String, nil] why there is none
  def self.missing
    return "LD_PRELOAD is for Linux only" unless RUBY_PLATFORM.include?("linux")
    "there is no C compiler" unless system(*COMPILER.split, "--version", out: File::NULL, err: File::NULL)
  end

  # @param source [String] name of a file beside this one, without .c
  def initialize(source)
    @folder = Dir.mktmpdir("hikyaku-preloaded")
    @library = File.join(@folder, "#{source}.so")
    said, status = Open3.capture2e(*COMPILER.split, *FLAGS, "-o", @library, File.expand_path("#{source}.c", __dir__), "-ldl")
    raise said unless status.success?
  end

  # @return [Hash{String => String}] of a process that has it
  def environment = {"LD_PRELOAD" => @library}

  # @return [void]
  def close = FileUtils.rm_rf(@folder)
end
