# frozen_string_literal: true

require "rack/utils"
require_relative "explorer/caller"
require_relative "explorer/page"
require_relative "explorer/visit"

module Hikyaku
  module Codec
    module Rack
      # A page for development: any response of the application as JSON and as MessagePack, side by side and readable, with its sizes in each coding.
      #
      #     use Hikyaku::Codec::Rack::Explorer                                              # config.ru; at /hikyaku/representations
      #
      #     mount Hikyaku::Codec::Rack::Explorer.new(Rails.application, at: nil) => "/hikyaku/representations" if Rails.env.development?   # config/routes.rb
      #
      # It asks the application itself, in this process, with GET and with the cookies of whoever looks, and has no script. It answers to browsers on this
      # machine alone, and refuses to be where responses are somebody's.
      class Explorer
        # It was mounted where it must not be. The message says where.
        class Misplaced < StandardError
          include Error
        end

        AT = "/hikyaku/representations"
        MAX_BYTES = 1_048_576
        PLACES = %w[development test].freeze
        # Of a path that is asked for.
        MOST_CHARACTERS = 2000
        # Says in the environment of a request that it is one of ours.
        MARK = "hikyaku.explorer"
        # RFC 3986, section 3.3, and the query; no part of another host.
        PATH = %r{\A/(?!/)[!$-~&&[^#\\"<>`{}|^]]*\z}
        NO_PATH = "Give a path of this application, as /items?page=2: it begins with one slash and has no host."
        private_constant :NO_PATH, :AT, :MAX_BYTES, :PLACES, :MOST_CHARACTERS, :MARK, :PATH

        # @param app [#call] that is asked, and that answers everything else
        # @param at [String, nil] its path; nil where it is mounted, and every request is for it
        # @param max_bytes [Integer] of a response that are read
        # @param environment [String] development or test
        # @raise [Misplaced]
        def initialize(app, at: AT, max_bytes: MAX_BYTES, environment: ENV["RAILS_ENV"] || ENV["RACK_ENV"] || "development")
          unless PLACES.include?(environment.to_s)
            raise Misplaced, "the page that shows representations is for development, and this is #{environment}: use #{self.class} in development only"
          end
          @app = app
          @at = at
          @max_bytes = max_bytes
        end

        # @param env [Hash]
        # @return [Array] status, header fields and body
        def call(env)
          return @app.call(env) unless @at.nil? || env["PATH_INFO"] == @at
          return problem(508, "the page does not show itself") if env[MARK]
          refusal = Caller.refusal(env)
          return problem(403, refusal) if refusal
          return problem(405, "only GET and HEAD are understood here", "allow" => "GET, HEAD") unless %w[GET HEAD].include?(env["REQUEST_METHOD"])
          status, html = answer(env)
          respond(status, Page::FIELDS, html, env)
        end

        private

        def answer(env)
          path = asked(env)
          return [200, Page.new.html] if path.empty?
          target = target(path)
          return [400, Page.new(path: path, complaint: NO_PATH).html] unless target
          visits = Page::ASKED.to_h { |name, type| [name, Visit.new(@app, env, target, accept: type, max_bytes: @max_bytes, mark: MARK, rooted: !@at.nil?)] }
          [200, Page.new(path: path, visits: visits).html]
        end

        # A query that cannot be read has no path.
        def asked(env)
          path = ::Rack::Utils.parse_query(env["QUERY_STRING"].to_s)["path"]
          path.is_a?(String) ? path : ""
        rescue
          ""
        end

        # What a browser would send for what somebody types.
        def target(path)
          return if path.size > MOST_CHARACTERS || !path.valid_encoding?
          sent = path.gsub(/[^!-~]|["<>`{}|^]/) { |character| character.bytes.map { |byte| format("%%%02X", byte) }.join }
          sent if sent.match?(PATH)
        end

        def respond(status, fields, body, env = nil)
          [status, {**fields, "content-length" => body.bytesize.to_s}, (env && env["REQUEST_METHOD"] == "HEAD") ? [] : [body]]
        end

        # Written here, so that nothing has to be escaped: there are only sentences of ours.
        def problem(status, detail, fields = {})
          body = %({"status":#{status},"detail":"#{detail}"})
          respond(status, {"content-type" => "application/problem+json", "cache-control" => "no-store", **fields}, body)
        end
      end
    end
  end
end
