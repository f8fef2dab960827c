# frozen_string_literal: true

require "fileutils"
require "json"
require "socket"
require "tmpdir"
require_relative "../../error"

module Hikyaku
  class Server
    class Sidecar
      # There should be a hub beside this process, and there is none.
      class Absent < StandardError
        include Error
      end

      # Where the hub's process and those who talk to it meet: a folder of this user alone, with the hub's two sockets and a
      # file that says what one must know to use them.
      #
      # Its path stands in the environment, so that Puma's workers, and whatever they start, find it. A Rails application in development
      # has a default folder, in which its console, its tasks and its jobs find the hub of the server that runs.
      class Folder
        # Names the folder. Set before Puma starts, it says where it is to be.
        VARIABLE = "HIKYAKU_SIDECAR"
        MODE = 0o700
        FILE = "hub.json"
        FILE_MODE = 0o600
        PREFIX = "hikyaku-"
        IN_APPLICATION = "tmp/hikyaku"
        # Bytes that the kernel has for the path of a Unix socket, less the final zero.
        MAX_PATH_BYTES = 107
        private_constant :MODE, :FILE, :FILE_MODE, :PREFIX, :IN_APPLICATION, :MAX_PATH_BYTES

        class << self
          attr_accessor :default

          def path_in(root) = File.join(root, IN_APPLICATION)

          def named(env = ENV)
            path = env[VARIABLE].to_s
            new(path) unless path.empty?
          end

          def found
            folder = new(default) if default
            folder if folder&.safe? && folder.edition && folder.answers?
          end

          # Makes the folder that the environment names, or takes the default folder, or makes one that no other process has.
          def make(env = ENV, default: nil, &log)
            given = named(env)
            # Another Puma's, whose environment came along with whoever started this one.
            given = nil if given&.own?
            folder = given&.claim || (take(default, &log) if default) || new(Dir.mktmpdir(PREFIX, base(env)), temporary: true)
            folder.check_length
            folder
          rescue SystemCallError => error
            raise ConfigError, "#{VARIABLE}: no folder can be made at #{given ? given.path : base(env)}: #{error.class.new.message.downcase}"
          end

          # Takes the default folder for the hub of this process, as long as that lives.
          def take(path)
            folder = new(path, temporary: false, own: true)
            folder.check_length
            return folder if folder.take
            yield "another server of this application has #{path}: a console publishes to that server, and to this one with " \
              "config.hikyaku.hub (HIKYAKU_HUB) set to its URL"
            nil
          rescue ConfigError, SystemCallError => error
            reason = error.is_a?(ConfigError) ? error.message : "no folder can be made at #{path}: #{error.class.new.message.downcase}"
            yield "a console does not find this server, and needs config.hikyaku.hub (HIKYAKU_HUB) set to its URL: #{reason}"
            nil
          end

          private

          # What systemd made for this service alone, before what all share.
          def base(env) = env["RUNTIME_DIRECTORY"].to_s.split(":").find { |path| File.writable?(path) } || Dir.tmpdir
        end

        attr_reader :path

        def initialize(path, temporary: nil, own: temporary)
          @path = File.expand_path(path)
          @temporary = temporary
          @own = own
        end

        def socket = "#{path}/hub.sock"

        def handover = "#{path}/handover.sock"

        def temporary? = @temporary.nil? ? told?(:temporary) : @temporary

        def own? = @own.nil? ? told?(:own) : @own

        def about
          @about ||= JSON.parse(File.read(file), symbolize_names: true).freeze
        rescue SystemCallError, JSON::ParserError
          raise Absent, "there is no hub in #{path}, which #{VARIABLE} names: it is where `plugin :hikyaku` of Puma runs"
        end

        def edition
          stat = File.stat(file)
          [path, stat.ino, stat.mtime]
        rescue SystemCallError
          nil
        end

        def answers?
          UNIXSocket.new(socket).close
          true
        rescue SystemCallError, ArgumentError
          false
        end

        def safe?
          stat = File.stat(path)
          stat.owned? && stat.mode & 0o022 == 0
        rescue SystemCallError
          false
        end

        # Tells what one must know to use the hub.
        def tell(about)
          about = about.merge(temporary: temporary?, own: own?)
          File.open("#{file}.new", File::WRONLY | File::CREAT | File::TRUNC, FILE_MODE) { |new| new.write(JSON.generate(about)) }
          File.rename("#{file}.new", file)
          @about = JSON.parse(JSON.generate(about), symbolize_names: true).freeze
        end

        # Keeps whoever tidies up old files away from it, while this process lives.
        def hold
          @held ||= File.open(path).tap { |folder| folder.flock(File::LOCK_SH | File::LOCK_NB) }
        end

        # Makes it, and holds it alone, as long as this process lives.
        def take
          claim
          @held = File.open(path)
          # Between two programs of one hot restart the hub holds no lock, and answers.
          if @held.flock(File::LOCK_EX | File::LOCK_NB) && !answers?
            # Of a server that was killed.
            remove
            return true
          end
          release
          false
        end

        # Lets go of it, in a process that has a copy of what belongs to another.
        def release
          @held&.close
          @held = nil
        end

        # Takes it away, if it was made for one Puma; else what stands in it.
        def remove
          temporary? ? FileUtils.rm_rf(path) : FileUtils.rm_f([file, socket, handover])
        end

        # Makes it once more, if somebody has taken it away.
        def make_again
          claim
        rescue SystemCallError => error
          raise ConfigError, "the folder #{path} cannot be made: #{error.class.new.message.downcase}"
        end

        # Makes it this user's alone.
        def claim
          FileUtils.mkdir_p(path, mode: MODE)
          return self if safe?
          raise ConfigError, "the folder #{path} must belong to the user of this process, and nobody else may write there (#{VARIABLE} names another)"
        end

        def check_length
          return if handover.bytesize <= MAX_PATH_BYTES
          raise ConfigError, "the path #{path} is too long for the sockets in it: choose one of #{MAX_PATH_BYTES - 14} bytes at most with #{VARIABLE}"
        end

        def inspect = "#<#{self.class.name} #{path}>"

        private

        def file = "#{path}/#{FILE}"

        def told?(name)
          !!about[name]
        rescue Absent
          false
        end
      end
    end
  end
end
