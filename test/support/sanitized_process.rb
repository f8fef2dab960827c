# frozen_string_literal: true

require "rbconfig"

# Loaded first in every Ruby that bin/sanitize starts, and in those that they start. The sanitizer's library must be there
# before all others, so the process begins again with it; other programs (curl, nginx) are spared.
folder = File.expand_path("../../tmp/sanitized", __dir__)
if File.read("/proc/self/maps").include?("/libasan.so")
  ENV.delete("LD_PRELOAD")
  $LOAD_PATH.unshift(folder)
  # Now it is what `require "hikyaku/native"` finds, whatever stands before it in the load path.
  require File.join(folder, "hikyaku/native.so")
else
  arguments = File.binread("/proc/self/cmdline").split("\0", -1)[1..-2]
  exec({"LD_PRELOAD" => File.read(File.join(folder, "library"))}, RbConfig.ruby, *arguments)
end
