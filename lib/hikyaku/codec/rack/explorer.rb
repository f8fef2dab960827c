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
      #     use Hikyaku::Codec::Rack::Explorer, environment: "development"                  # config.ru; at /hikyaku/representations
      #
      #     if Rails.env.development?                                                       # config/routes.rb
      #       mount Hikyaku::Codec::Rack::Explorer.new(Rails.application, at: nil, environment: Rails.env) => "/hikyaku/representations"
      #     end
      #
      # It asks the application itself, in this process, with GET and with the cookies of whoever looks, and has no script. It answers to browsers on this
      # machine alone, and refuses to be where responses are somebody's.
      class Explorer
        # It was mounted where it must not be, or where nobody says that it may be. The message says which.
        class Misplaced < StandardError
          include Error
        end

        AT = "/hikyaku/representations"
        MAX_BYTES = 1_048_576
        PLACES = %w[development test].freeze
        # Where people say what the environment is. RACK_ENV is not among them: Puma and rackup set it to development where nobody says anything.
        SAID = %w[RAILS_ENV APP_ENV].freeze
        # Of a path that is asked for.
        MOST_CHARACTERS = 2000
        # Says in the environment of a request that it is one of ours.
        MARK = "hikyaku.explorer"
        # RFC 3986, section 3.3, and the query; no part of another host.
        PATH = %r{\A/(?!/)[!$-~&&[^#\\"<>`{}|^]]*\z}
        NO_PATH = "Give a path of this application, as /items?page=2: it begins with one slash and has no host."
        private_constant :NO_PATH, :AT, :MAX_BYTES, :PLACES, :SAID, :MOST_CHARACTERS, :MARK, :PATH

        def initialize(app, at: AT, max_bytes: MAX_BYTES, environment: nil)
          meant_here!(environment ? [environment.to_s] : ENV.values_at(*SAID).compact)
          meant_here!([ENV["RACK_ENV"]]) if environment.nil? && ENV["RACK_ENV"]
          @app = app
          @at = at
          @max_bytes = max_bytes
        end

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

        def meant_here!(said)
          if said.empty?
            raise Misplaced, "nobody says that this is development, for which the page that shows representations is: set #{SAID.join(" or ")} to development, " \
              "or give #{self.class} environment: \"development\""
          end
          other = said.find { |name| !PLACES.include?(name) } or return
          raise Misplaced, "the page that shows representations is for development, and this is #{other}: use #{self.class} in development only"
        end

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
