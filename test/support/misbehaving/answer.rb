# frozen_string_literal: true

require "zlib"

module Misbehaving
  # An answer, from which others are made.
  Answer = Struct.new(:version, :status, :headers, :body) do
    # The right one.
    #
    # @param request [Request]
    # @return [Answer]
    def self.to(request)
      path = request.path
      headers = {"Content-Type" => Misbehaving.type_of(path), "ETag" => Misbehaving.etag_of(path)}
      return new("HTTP/1.1", "304 Not Modified", headers.slice("ETag"), "") if request.method == "GET" && request.unchanged?(headers["ETag"])
      body = (request.method == "GET" || request.method == "HEAD") ? Misbehaving.body_of(path) : "#{request.method} #{path}\n"
      new("HTTP/1.1", "200 OK", headers.merge("Content-Length" => body.bytesize), (request.method == "HEAD") ? "" : body)
    end

    # @return [Answer] with fields added, or removed where they are nil
    def with(fields) = self.class.new(version, status, headers.merge(fields).compact, body)

    # @return [String]
    def head = "#{version} #{status}\r\n#{headers.map { |name, value| "#{name}: #{value}\r\n" }.join}\r\n"

    # @return [String] head and body
    def bytes = "#{head}#{body}"
  end
end
