# frozen_string_literal: true

require_relative "documentation"

# What users of the gem may rely on. It is documented wholly, and has its types in sig/.
module PublicInterface
  NAMES = %w[
    Hikyaku
    Hikyaku::Hub
    Hikyaku::Hub::Update
    Hikyaku::Web
    Hikyaku::Web::TokenMaker
    Hikyaku::Publisher
    Hikyaku::Server::Relay
    Hikyaku::EventSource
    Hikyaku::EventSource::Event
    Hikyaku::HTTP::Parser
    Hikyaku::HTTP::Parser::Head
    Hikyaku::HTTP::Parser::Request
    Hikyaku::HTTP::Parser::Response
    Hikyaku::HTTP::Parser::Malformed
    Hikyaku::HTTP::Client
    Hikyaku::HTTP::Client::Fetch
    Hikyaku::HTTP::Client::Stream
    Hikyaku::HTTP::Client::Memory
    Hikyaku::HTTP::Response
    Hikyaku::HTTP::Failure
    Hikyaku::HTTP::Part
    Hikyaku::HTTP::Address
    Hikyaku::HTTP::Origin
    Hikyaku::HTTP::InvalidURL
    Hikyaku::HTTP::RequestFailed
    Hikyaku::HTTP::ConnectFailed
    Hikyaku::HTTP::TimedOut
    Hikyaku::HTTP::BodyFailed
    Hikyaku::HTTP::ConnectionLost
    Hikyaku::HTTP::BadResponse
    Hikyaku::HTTP::ResponseTooLarge
    Hikyaku::HTTP::BadRedirect
    Hikyaku::HTTP::BadStatus
    Hikyaku::HTTP::Canceled
    Hikyaku::HTTP::Cache
    Hikyaku::HTTP::Cache::Lookup
    Hikyaku::HTTP::Cache::CachedResponse
    Hikyaku::Codec
    Hikyaku::Codec::Format
    Hikyaku::Codec::JSON
    Hikyaku::Codec::MessagePack
    Hikyaku::Codec::Accept
    Hikyaku::Codec::NotAcceptable
    Hikyaku::Codec::Coding
    Hikyaku::Codec::Coding::Gzip
    Hikyaku::Codec::Coding::Brotli
    Hikyaku::Codec::Coding::Zstandard
    Hikyaku::Codec::Rack::Compression
    Hikyaku::Codec::Rack::Representation
    Hikyaku::Codec::Rack::Body
    Hikyaku::Config
    Hikyaku::Config::Issuer
    Hikyaku::Broker::Address
    Hikyaku::Broker::Server
    Hikyaku::Broker::Client
    Hikyaku::Broker::Client::Message
    Hikyaku::Broker::Client::Receipt
    Hikyaku::Broker::Client::Pending
    Hikyaku::Broker::Client::Delivery
    Hikyaku::Broker::Client::Receiver
    Hikyaku::Broker::Client::Subscription
    Hikyaku::Server
    Hikyaku::Doctor
    Hikyaku::Doctor::Finding
    Hikyaku::CLI
    Hikyaku::TestHelper
    Hikyaku::Outbox
    Hikyaku::Presence
    Hikyaku::Presence::TagHelper
    Hikyaku::Turbo
    Hikyaku::Turbo::TestHelper
  ].freeze

  # @param name [String] one of the above
  # @param kind [Symbol] :instance or :singleton
  # @return [Array<Symbol>] its own public methods, as they are in Ruby, without those marked "@api private"
  def self.methods_of(name, kind)
    require File.join(Architecture::LIB, file_of(name))
    constant = Object.const_get(name)
    methods = (kind == :instance) ? constant.public_instance_methods(false) : constant.singleton_methods(false)
    hidden = Documentation.registry.at(name).meths(inherited: false, scope: (kind == :instance) ? :instance : :class)
      .select { |method| method.tag(:api)&.text == "private" }.map(&:name)
    methods - hidden
  end

  def self.file_of(name)
    top, *words = name.split("::").map { |word| word.gsub(/([a-z])([A-Z])/, '\1_\2').downcase }
    # Some folders only group, errors stand together, and small classes in the file of the one that uses them.
    ["", "client/", "rails/", "support/"].product([words, [*words[..-2], "errors"], words[..-2]]).map { |group, path| "#{top}/#{group}#{path.join("/")}.rb" }
      .find { |file| File.file?(File.join(Architecture::LIB, file)) } || "#{top}.rb"
  end
  private_class_method :file_of
end
