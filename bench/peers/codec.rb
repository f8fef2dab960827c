# frozen_string_literal: true

require_relative "../codec/server"

module Bench
  # One Rails application in Puma that answers JSON or MessagePack, by what serialises and what compresses.
  CodecServer.pairs.each { |format, way| Entrants.add CodecServer.new(format, way) }
  %w[json msgpack].each { |format| ReadyServer::WAYS.each_key { |way| Entrants.add ReadyServer.new(format, way) } }
end
