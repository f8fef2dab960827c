# frozen_string_literal: true

require "fileutils"
require "json"
require "tmpdir"
require_relative "../error"

module Hikyaku
  class Companion
    # There should be a hub beside this process, and there is none.
    class Absent < StandardError
      include Error
    end

    # Where the hub's process and those who talk to it meet: a folder of this user alone, with the hub's two sockets and a
    # file that says what one must know to use them.
    #
    # Its path stands in the environment, so that Puma's workers, and whatever they start, find it.
    class Folder
      # Names the folder. Set before Puma starts, it says where it is to be.
      VARIABLE = "HIKYAKU_COMPANION"
      MODE = 0o700
      FILE = "hub.json"
      FILE_MODE = 0o600
      PREFIX = "hikyaku-"
      # Bytes that the kernel has for the path of a Unix socket, less the final zero.
      MAX_PATH_BYTES = 107
      private_constant :MODE, :FILE, :FILE_MODE, :PREFIX, :MAX_PATH_BYTES

      class << self
        # @param env [Hash{String => String}]
        # @return [Folder, nil] which the environment names
        def named(env = ENV)
          path = env[VARIABLE].to_s
          new(path) unless path.empty?
        end

        # Makes the folder that the environment names, or one that nobody else has.
        #
        # @param env [Hash{String => String}]
        # @return [Folder]
        # @raise [ConfigError] there cannot be one
        def make(env = ENV)
          given = named(env)
          # Another Puma's, whose environment came along with whoever started this one.
          given = nil if given&.temporary?
          folder = given&.claim || new(Dir.mktmpdir(PREFIX, base(env)), temporary: true)
          folder.check_length
          folder
        rescue SystemCallError => error
          raise ConfigError, "#{VARIABLE}: no folder can be made at #{given ? given.path : base(env)}: #{error.class.new.message.downcase}"
        end

        private

        # What systemd made for this service alone, before what all share.
        def base(env) = env["RUNTIME_DIRECTORY"].to_s.split(":").find { |path| File.writable?(path) } || Dir.tmpdir
      end

      # @return [String]
      attr_reader :path

      # @param path [String]
      # @param temporary [Boolean, nil] nil: as its file says
      def initialize(path, temporary: nil)
        @path = File.expand_path(path)
        @temporary = temporary
      end

      # @return [String] where the hub listens
      def socket = "#{path}/hub.sock"

      # @return [String] where it takes connections over
      def handover = "#{path}/handover.sock"

      # @return [Boolean] whether it was made for one Puma, and goes with it
      def temporary?
        @temporary.nil? ? !!about[:temporary] : @temporary
      rescue Absent
        false
      end

      # @return [Hash{Symbol => Object}] what was told about the hub last
      # @raise [Absent] nothing was
      def about
        @about ||= JSON.parse(File.read(file), symbolize_names: true).freeze
      rescue SystemCallError, JSON::ParserError
        raise Absent, "there is no hub in #{path}, which #{VARIABLE} names: it is where `plugin :hikyaku` of Puma runs"
      end

      # Tells what one must know to use the hub.
      #
      # @param about [Hash{Symbol => Object}]
      # @return [void]
      def tell(about)
        about = about.merge(temporary: temporary?)
        File.open("#{file}.new", File::WRONLY | File::CREAT | File::TRUNC, FILE_MODE) { |new| new.write(JSON.generate(about)) }
        File.rename("#{file}.new", file)
        @about = JSON.parse(JSON.generate(about), symbolize_names: true).freeze
      end

      # Keeps whoever tidies up old files away from it, while this process lives.
      #
      # @return [void]
      def hold
        @held ||= File.open(path).tap { |folder| folder.flock(File::LOCK_SH | File::LOCK_NB) }
      end

      # Takes it away, if it was made for one Puma; else what stands in it.
      #
      # @return [void]
      def remove
        temporary? ? FileUtils.rm_rf(path) : FileUtils.rm_f([file, socket, handover])
      end

      # Makes it once more, if somebody has taken it away.
      #
      # @return [void]
      # @raise [ConfigError] it is somebody else's, or cannot be made
      def make_again
        claim
      rescue SystemCallError => error
        raise ConfigError, "the folder #{path} cannot be made: #{error.class.new.message.downcase}"
      end

      # Makes it this user's alone.
      #
      # @return [self]
      # @raise [ConfigError] it is somebody else's
      # @raise [SystemCallError]
      def claim
        FileUtils.mkdir_p(path, mode: MODE)
        stat = File.stat(path)
        return self if stat.owned? && stat.mode & 0o022 == 0
        raise ConfigError, "#{VARIABLE}: #{path} must belong to the user of this process, and nobody else may write there"
      end

      # @return [void]
      # @raise [ConfigError]
      def check_length
        return if handover.bytesize <= MAX_PATH_BYTES
        raise ConfigError, "#{VARIABLE}: the path #{path} is too long for the sockets in it: choose one of #{MAX_PATH_BYTES - 14} bytes at most"
      end

      # @return [String]
      def inspect = "#<#{self.class.name} #{path}>"

      private

      def file = "#{path}/#{FILE}"
    end
  end
end
