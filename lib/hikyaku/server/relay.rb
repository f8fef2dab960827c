# frozen_string_literal: true

require_relative "sidecar/folder"
require_relative "handover"
require_relative "puma_timeouts"
require_relative "relay/hub_unavailable"
require_relative "relay/hub_connection"
require_relative "relay/request"
require_relative "relay/stream"
require_relative "../web/body_limit"
require_relative "../web/change"
require_relative "../web/metadata"
require_relative "../web/problem"
require_relative "../web/request"

module Hikyaku
  class Server
    # Stands for the hub in Puma's workers, when `plugin :hikyaku` runs the hub beside them. As middleware,
    #
    #     use Hikyaku::Server::Relay      # config.ru
    #     run MyApp
    #
    # it takes the requests for the hub's paths and lets the others pass; `run Hikyaku::Server::Relay.new` answers nothing else.
    #
    # A subscribe's connection is handed to the hub's process, with the request: the worker has no more to do with it. All else is
    # asked of the hub over its Unix socket. Where there is no raw socket to hand over (TLS in Puma, another server), and to a hub that
    # takes none (the engine in Ruby), the stream is given on as it comes.
    #
    # The hub's process decides everything by itself; here nobody is let in or kept out.
    class Relay
      # Ends the streams that this process gives on as they come: its server is about to stop, and would wait for them.
      #
      # @return [void]
      def self.shutdown = Stream.close_all

      # @param app [#call, nil] the application behind
      # @param folder [Sidecar::Folder, nil] where the hub is; what the environment names unless given
      def initialize(app = nil, folder: nil)
        @app = app
        @folder = folder
        @lock = Mutex.new
        PumaTimeouts.install(nil)
      end

      # @param env [Hash] a Rack environment
      # @return [Array(Integer, Hash, #each)] a Rack response
      # @raise [ConfigError] `plugin :hikyaku` does not run
      def call(env)
        path = Request.path(env)
        return relay(env, path) if mine?(path)
        @app ? @app.call(env) : Web::Problem.new(404, "there is nothing at this address").response
      rescue HubUnavailable => away
        away.response_to(env)
      rescue Web::Problem => problem
        problem.response
      end

      # @param path [String]
      # @return [Boolean] whether it belongs to the hub
      # @raise [ConfigError] `plugin :hikyaku` does not run
      def serves?(path) = path == hub.path || path.start_with?("#{hub.path}/") || path == hub.metadata_path

      # @return [String]
      def inspect = "#<#{self.class.name}#{" #{@folder.path}" if @folder}>"

      # What is known of the hub.
      Hub = Struct.new(:path, :metadata_path, :max_request_bytes, :socket, :sender, :exchange, keyword_init: true)
      private_constant :Hub

      private

      # A hub of which nothing is known has no path: the application goes on without it.
      def mine?(path)
        serves?(path)
      rescue Sidecar::Absent
        raise HubUnavailable unless @app
      end

      def hub = @hub || @lock.synchronize { @hub ||= find }

      def find
        @folder ||= Sidecar::Folder.named or
          raise ConfigError, "Hikyaku::Server::Relay stands for a hub beside Puma, and there is none: add `plugin :hikyaku` to config/puma.rb"
        about = @folder.about
        # Whose metadata it is: as much as says where it stands.
        known = Struct.new(:resource_identifier, :hub_url, :cookie_name, :subscriptions).new(*about.values_at(:resource_identifier, :hub_url))
        metadata_path = Web::Metadata.new(known).path
        Web::BodyLimit.watch([about[:path], metadata_path], about[:max_request_bytes])
        Hub.new(path: about[:path], metadata_path: metadata_path, max_request_bytes: about[:max_request_bytes], socket: @folder.socket,
          sender: (Handover::Sender.new(@folder.handover) unless about[:handover] == false), exchange: HubConnection.new(@folder.socket))
      end

      def relay(env, path)
        Web::Request.check_host(env)
        # Its body was not read, so the hub could not tell.
        Web::Request.check_length(env, Web::BodyLimit.hard(hub.max_request_bytes))
        client = env["puma.socket"]
        request = Request.new(env, limit: hub.max_request_bytes + 1)
        return hub.exchange.call(request, address(env, client), harmless: change?(path)) unless path == hub.path && request.streamed?
        (hand_over(env, client, request) if hub.sender && client.is_a?(BasicSocket) && env["rack.hijack"]) ||
          Stream.new(hub.socket, request.bytes(address(env, client))).response(env)
      end

      # A stream that is changed twice to the same is as if it were once.
      def change?(path) = path.start_with?("#{hub.path}#{Web::Change::ROOT}")

      # @return [Array, nil] what no server looks at any more; nil: the request is too large for that
      def hand_over(env, socket, request)
        bytes = request.bytes(other_address(env, socket))
        return if bytes.bytesize > Handover::MAX_REQUEST_BYTES
        raise HubUnavailable unless hub.sender.call(socket, bytes)
        env["rack.hijack"].call
        # Never shut down: it is the hub's now.
        socket.close
        [200, {}, []]
      end

      # What the hub, which believes whoever asks over its Unix socket, is to take for the client's address. Who comes through a
      # Unix socket has none, whatever the server calls it.
      def address(env, client) = client.is_a?(UNIXSocket) ? nil : env["REMOTE_ADDR"]

      # The hub asks a connection itself where it comes from. Here the server may know better (`set_remote_address`).
      def other_address(env, socket)
        return if socket.is_a?(UNIXSocket)
        peer = socket.remote_address.ip_address.delete_prefix("::ffff:")
        env["REMOTE_ADDR"] unless env["REMOTE_ADDR"] == peer
      rescue SystemCallError
        nil # the client is gone already
      end
    end
  end
end
