# frozen_string_literal: true

require "json"
require "net/http"
require "zlib"
require_relative "../harness/load"
require_relative "payloads"

module Bench
  # The application while it runs, with what stands in front of it, and the load that is put on it.
  class Answers
    HOST = "127.0.0.1"
    IDENTITY = "identity"
    MEDIA_TYPES = {
      "json" => "application/json", "oj" => "application/json", "msgpack" => "application/vnd.msgpack", "mpac" => "application/x-mpac"
    }.freeze
    TRIAL = "paper"

    # @param format [String] of {MEDIA_TYPES}
    # @param servers [Array<Server>] the one that is asked comes first
    # @param compresses [Boolean] whether anything of them does
    def initialize(format, servers, compresses:)
      @format = format
      @servers = servers
      @compresses = compresses
    end

    # @return [Hash] "whole": whether it answers what it should, as it should
    def wake = {"whole" => wrong(TRIAL, coding).nil?, "wrong" => wrong(TRIAL, coding)}

    # @return [String] that it answers with where nothing is said
    def coding = @compresses ? "gzip" : IDENTITY

    # One answer is looked at; all others must have the same bytes.
    #
    # @param payload [String] of {Payloads}
    # @param coding [String] "identity", "gzip", "br" or "zstd"
    # @param clients [Integer] at the same time
    # @param seconds [Float] that are measured
    # @param warmup [Float] seconds before those
    # @return [Hash] figures
    # @raise [Load::Failed] the answer is not what was asked for
    def load(payload, coding: self.coding, clients: 100, seconds: 3, warmup: 1)
      reason = wrong(payload, coding)
      raise Load::Failed, reason if reason
      Load.run(program: "getter", port: port, path: "/#{payload}", header: fields(coding).map { |name, value| "#{name}: #{value}" },
        coding: (coding unless coding == IDENTITY), clients: clients, seconds: seconds, warmup: warmup, pid: @servers.flat_map(&:pids))
    end

    private

    def port = @servers.first.port

    def fields(coding) = {"Accept" => MEDIA_TYPES.fetch(@format), "Accept-Encoding" => coding}

    # @return [String, nil] what is not as it should be
    def wrong(payload, coding)
      answer = Net::HTTP.start(HOST, port) { |http| http.get("/#{payload}", fields(coding)) }
      came = answer["content-encoding"] || IDENTITY
      return "the status is #{answer.code}" unless answer.code == "200"
      return "the coding is #{came}, not #{coding}" unless came == coding
      return "the type is #{answer["content-type"]}" unless answer["content-type"].to_s.start_with?(MEDIA_TYPES.fetch(@format))
      "the body is not the object" unless object(answer.body, coding) == JSON.parse(JSON.generate(Payloads.fetch(payload)))
    end

    # By libraries that others use.
    def object(body, coding)
      bytes = decoded(body, coding)
      return JSON.parse(bytes) if MEDIA_TYPES.fetch(@format) == MEDIA_TYPES["json"]
      require "msgpack"
      MessagePack.unpack(bytes)
    end

    def decoded(body, coding)
      case coding
      when "gzip" then Zlib.gunzip(body)
      when "br" then require("brotli").then { Brotli.inflate(body) }
      when "zstd" then require("zstd-ruby").then { Zstd.decompress(body) }
      else body
      end
    end
  end
end
