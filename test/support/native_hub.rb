# frozen_string_literal: true

require_relative "access_tokens"
require_relative "http_client"
require_relative "running_hub"
require_relative "sanitizers"

# The hub's process on the engine in C, and what the system says of it. It believes the tokens of AccessTokens, and nothing of
# developer mode.
class NativeHub < RunningHub
  KEYS = AccessTokens::SECRETS.flat_map { |role, secret| ["--#{role}-key", secret] }.freeze
  FLAGS = ["--no-dev", "--anonymous", "--metrics", "--issuer", AccessTokens::ISSUER, "--resource-identifier", AccessTokens::HUB_URL].freeze
  PATH = "/.well-known/mercure"
  FORM = {"content-type" => "application/x-www-form-urlencoded"}.freeze
  # A line of the log that nothing which these tests do to a hub may bring about.
  COMPLAINT = /^\S+ (?:ERROR|FATAL|WARN) .*/
  private_constant :KEYS, :FLAGS, :COMPLAINT

  # @param flags [Array<String>]
  # @param keys [Array<String>] the flags that say whose tokens are good
  # @param engine [String]
  # @param options [Hash] of RunningHub
  def initialize(*flags, keys: KEYS, engine: "c", env: {}, **options)
    env = Sanitizers.environment.merge(env) if Sanitizers.wanted? && engine == "c"
    super(*FLAGS, *keys, *flags, "--engine", engine, env: env, **options)
    raise "it does not run on the engine with sanitizers" if Sanitizers.wanted? && engine == "c" && !Sanitizers.runs?(pid)
  end

  # As RunningHub has it; what the sanitizers have found up to the end is an error.
  def stop(...)
    super.tap { raise Sanitizers.reports(log).join("\n") if Sanitizers.reports(log).any? }
  end

  def client = HttpClient.new(port)

  # @param fields [Hash, Array<Array>, String]
  # @return [HttpClient::Response]
  def post(fields, token: publisher, headers: {})
    body = fields.is_a?(String) ? fields : URI.encode_www_form(fields)
    client.request("POST", PATH, headers: FORM.merge(bearer(token), headers), body: body)
  end

  # @return [String] the event's id
  def publish(topic, data, token: publisher, **fields)
    response = post({topic: topic, data: data}.merge(fields), token: token)
    raise "#{response.status} #{response.body}" unless response.status == 200
    response.body
  end

  # @return [EventStream, HttpClient::Response]
  def subscribe(parameters, token: nil, headers: {})
    query = parameters.is_a?(String) ? parameters : URI.encode_www_form(parameters)
    client.stream("GET", "#{PATH}?#{query}", headers: bearer(token).merge(headers))
  end

  # @return [HttpClient::Response]
  def get(target, headers: {}) = client.request("GET", target, headers: headers)

  # @return [Hash{String => Float}] what /metrics says, by name and labels
  def metrics
    get("/metrics").body.scan(/^(hikyaku_\w+(?:\{[^}]*\})?) (\S+)$/).to_h { |name, value| [name.delete_prefix("hikyaku_"), value.to_f] }
  end

  # @return [Array<String>] open files: what each is
  def descriptors
    Dir.children("/proc/#{pid}/fd").filter_map do |number|
      File.readlink("/proc/#{pid}/fd/#{number}")
    rescue Errno::ENOENT
      nil
    end
  end

  # @return [Integer] bytes
  def memory = File.read("/proc/#{pid}/status")[/^VmRSS:\s+(\d+)/, 1].to_i * 1024

  # @return [Float] seconds of CPU so far
  def cpu = File.read("/proc/#{pid}/stat")[/\) (.*)/, 1].split.values_at(11, 12).sum(&:to_i) / 100.0

  # @return [Array<String>] what the log complains about, and what the sanitizers found
  def complaints = log.scan(COMPLAINT) + Sanitizers.reports(log)

  # @return [String] of one who may publish everything
  def publisher = @publisher ||= AccessTokens.token(:publisher, "*", exp: Time.now.to_i + 3_600)

  def bearer(token) = token ? {"authorization" => "Bearer #{token}"} : {}
end
