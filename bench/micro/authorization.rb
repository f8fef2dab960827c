# frozen_string_literal: true

# What it costs to ask who sent a request: a token that is remembered (the path of every publish), and one that is seen
# for the first time, by algorithm. Microseconds of CPU; the median, least and greatest of several rounds, in which
# everything is measured in turn.

require "base64"
require "json"
require "jwt"
require "jwt/eddsa"
require "openssl"
require "optparse"
require_relative "../../lib/hikyaku/web/authorization"

rounds = 7
seconds = 0.2
OptionParser.new do |parser|
  parser.banner = "usage: bin/bench authorization [options]"
  parser.on("--rounds N", Integer, "how often everything is measured (#{rounds})") { |n| rounds = n }
  parser.on("--seconds S", Float, "for how long each time (#{seconds})") { |s| seconds = s }
end.parse!(ARGV)

URL = "https://hub.example.com/.well-known/mercure"
SECRET = "a secret of thirty-two bytes or more"
RSA = OpenSSL::PKey::RSA.new(2048)
EC = OpenSSL::PKey::EC.generate("prime256v1")
ED = Ed25519::SigningKey.generate
Issuer = Struct.new(:issuer, :publisher_key, :alg, :publisher_alg, :subscriber_alg, :subscriber_key, :jwks)

def claims
  now = Time.now.to_i
  topics = [{match: "https://example.com/books/1"}, {match: "https://example.com/users/1"}]
  {iss: "issuer", aud: URL, sub: "user-1", client_id: "app", iat: now, exp: now + 3600, jti: "6f0a",
   authorization_details: [{type: "https://mercure.rocks/authorization-detail", actions: %w[publish], topics: topics}]}
end

def authorization(key, limits = {})
  Hikyaku::Web::Authorization.new(issuers: [Issuer.new("issuer", key)], resource_identifier: URL, hub_url: URL, limits: limits)
end

def ed25519_set
  JSON.generate(keys: [JWT::JWK.new(ED.verify_key).export])
end

keys = {"HS256" => [SECRET, SECRET], "ES256" => [EC, EC.public_to_pem], "RS256" => [RSA, RSA.public_to_pem], "EdDSA" => [ED, ed25519_set]}
work = {}
tokens = {}
keys.each do |alg, (signing, verifying)|
  tokens[alg] = token = JWT.encode(claims, signing, alg, typ: "at+jwt")
  remembering = authorization(verifying)
  forgetting = authorization(verifying, max_verdict_bytes: 0)
  work["#{alg}, remembered"] = -> { remembering.access(token, :publisher) }
  work["#{alg}, for the first time"] = -> { forgetting.access(token, :publisher) }
end
work["the clock alone"] = -> { Time.now.to_f }
work["nothing"] = -> {}

def microseconds(seconds, call)
  times = 0
  started = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
  loop do
    100.times { call.call }
    times += 100
    spent = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) - started
    return spent * 1e6 / times if spent >= seconds
  end
end

results = Hash.new { |hash, name| hash[name] = [] }
rounds.times do |round|
  work.to_a.rotate(round).each { |name, call| results[name] << microseconds(seconds, call) }
end

puts "Ruby #{RUBY_VERSION}, OpenSSL #{OpenSSL::OPENSSL_LIBRARY_VERSION[/[\d.]+/]}, a token of #{tokens["HS256"].bytesize} bytes (HS256)", ""
puts "microseconds".ljust(28) + %w[median least greatest].map { |word| word.rjust(10) }.join
work.each_key do |name|
  sorted = results[name].sort
  puts name.ljust(28) + [sorted[sorted.size / 2], sorted.first, sorted.last].map { |value| format("%10.2f", value) }.join
end
