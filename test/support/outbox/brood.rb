# frozen_string_literal: true

# What processes of application.rb have in common, loaded once: it forks one of them for each order, as loading takes longer than
# all that most of them do. An order is three descriptors (output, errors, and where their end is told) and a line of JSON.
#
#     ruby -Ilib brood.rb sqlite3   # the socket is its standard input
require "json"
require "logger"
require "socket"
require "rails"
require "active_record/railtie"
require "active_record/connection_adapters/#{ARGV.shift}_adapter"
require "hikyaku"

socket = UNIXSocket.for_fd(0)
until socket.wait_readable && socket.recv_nonblock(1, Socket::MSG_PEEK).to_s.empty?
  output, errors, told = Array.new(3) { socket.recv_io }
  order = JSON.parse(socket.gets)
  pid = fork do
    $stdin.reopen(File::NULL)
    $stdout.reopen(output)
    $stderr.reopen(errors).sync = true
    [output, errors, told].each(&:close)
    Dir.chdir(order.fetch("folder"))
    ENV.update(order.fetch("env"))
    ARGV.replace(order.fetch("task"))
    load File.expand_path("application.rb", __dir__)
  end
  [output, errors].each(&:close)
  Thread.new(pid, told) do |child, teller|
    _, status = Process.wait2(child)
    teller.puts("#{status.exitstatus.inspect} #{status.termsig.inspect}")
    teller.close
  end
  socket.puts(pid)
end
