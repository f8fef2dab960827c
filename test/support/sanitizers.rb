# frozen_string_literal: true

require "open3"
require "rbconfig"

# The engine in C with AddressSanitizer and UndefinedBehaviorSanitizer, for the hub's process alone: the test itself keeps its
# speed. HIKYAKU_TEST_SANITIZED=1 asks for it.
module Sanitizers
  ROOT = File.expand_path("../..", __dir__)
  FOLDER = File.join(ROOT, "tmp/sanitized")
  LIBRARY = File.join(FOLDER, "hikyaku/native.so")
  NAMES = "address,undefined"
  REPORT = /^.*(?:ERROR: \w+Sanitizer|SUMMARY: \w+Sanitizer|runtime error: ).*/
  private_constant :ROOT, :FOLDER, :LIBRARY, :NAMES, :REPORT

  @compiled = false

  module_function

  def wanted? = ENV["HIKYAKU_TEST_SANITIZED"] == "1"

  # @return [String, nil] why there is none here
  def missing
    return if File.exist?(runtime)
    "the C compiler has no AddressSanitizer here"
  end

  # Compiles the engine so, if something has changed since.
  #
  # @raise [RuntimeError]
  def compile
    return if @compiled
    output, status = Open3.capture2e({"HIKYAKU_SANITIZE" => NAMES}, File.join(ROOT, "bin/compile"))
    raise output unless status.success?
    @compiled = true
  end

  # Ruby itself leaves memory behind when it ends. Loaded first, the library is what `require "hikyaku/native"` finds.
  #
  # @return [Hash{String => String}] of the process
  def environment
    compile
    {
      "LD_PRELOAD" => runtime, "ASAN_OPTIONS" => "detect_leaks=0:use_sigaltstack=0", "UBSAN_OPTIONS" => "print_stacktrace=1",
      "RUBYOPT" => "#{ENV["RUBYOPT"]} -I#{FOLDER} -r#{LIBRARY}"
    }
  end

  def runs?(pid) = File.read("/proc/#{pid}/maps").include?(LIBRARY)

  # @return [Array<String>] what a process that wrote this found
  def reports(log) = log.scan(REPORT)

  def runtime
    @runtime ||= Open3.capture2(*RbConfig::CONFIG["CC"].split, "-print-file-name=libasan.so").first.chomp
  end
end
