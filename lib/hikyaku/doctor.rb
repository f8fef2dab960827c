# frozen_string_literal: true

require_relative "error"
require_relative "doctor/credentials"
require_relative "doctor/finding"
require_relative "doctor/options"
require_relative "doctor/visit"
require_relative "doctor/checks/access"
require_relative "doctor/checks/streams"
require_relative "doctor/checks/connection"
require_relative "doctor/checks/routing"

module Hikyaku
  # Looks at a hub from the outside, as its clients do: what stands between them and the hub is where most goes wrong.
  #
  #     doctor = Hikyaku::Doctor.new("https://hub.example.com/.well-known/mercure")
  #     doctor.run { |finding| puts "#{finding.level} #{finding.check}: #{finding.message}" }
  #
  # It publishes a few small updates on a topic that nobody else has, if it is given a publisher's key or token.
  class Doctor
    # In the order in which they are run: each may believe what those before it have found.
    CHECKS = [
      Checks::Certificate, Checks::Reach, Checks::Plain, Checks::Http2, Checks::Clock, Checks::Metadata, Checks::Discovery, Checks::Paths,
      Checks::Exposure, Checks::Authorization, Checks::Length, Checks::Cookie, Checks::Cors, Checks::Publisher, Checks::Subscriber, Checks::Headers,
      Checks::Flush, Checks::Buffering, Checks::Compression, Checks::Reconnection, Checks::Processes, Checks::Idle
    ].freeze
    # Without what these learn, the others know nothing.
    ALWAYS = [Checks::Certificate, Checks::Reach, Checks::Metadata, Checks::Publisher, Checks::Subscriber].freeze
    private_constant :CHECKS, :ALWAYS

    # Names of the checks, and what each is about.
    NAMES = CHECKS.to_h { |check| [check.id, check.about] }.freeze

    # @return [String, nil] after {#run}, why the rest was not checked
    attr_reader :stopped

    # @param url [String] `http(s)://HOST/PATH`, `unix:SOCKET` or `unix:SOCKET:/PATH`
    # @param keys [Hash{Symbol => Hash}] by role, :publisher and :subscriber: `{issuer:, key:, alg:}` to make tokens with
    # @param tokens [Array<String>] tokens to use in place of those; each for what it grants
    # @param audience [String, nil] for which tokens are made; what the hub's metadata say unless given
    # @param progress [#call, nil] called with what is waited for, and the seconds that it may take
    # @param options [Hash] `idle:` seconds for which a stream is held (75; 0: not at all), `patience:` seconds in which what
    #   should come at once must be there (1), `connections:` so many to look for several hubs (6), `origin:` whose pages use the
    #   hub, `page:` URL of a page that should lead to it, `topic:` to publish on, `behind:` names of what stands in front,
    #   `http_port:` where plain HTTP is answered, `connect:` HOST:PORT to connect to in place of the URL's, `ca_file:`
    #   certificates to trust, `insecure:` whether tokens may travel over plain HTTP to another machine, `only:` and `skip:`
    #   names of checks
    # @raise [ConfigError]
    def initialize(url, keys: {}, tokens: [], audience: nil, progress: nil, **options)
      @options = Options.new(NAMES.keys, **options)
      credentials = Credentials.new(signers: keys.transform_values { |key| Credentials::Signer.new(**key) }, tokens: tokens, audience: audience, lifetime: @options.idle)
      @visit = Visit.new(url, credentials: credentials, options: @options, progress: progress || ->(*) {})
    end

    # @yieldparam finding [Finding] as soon as it is there
    # @return [Array<Finding>]
    def run
      found = []
      CHECKS.select { |check| @options.wants?(check.id) || ALWAYS.include?(check) }.each do |check|
        break if @visit.stopped
        @visit.progress(check.id)
        new = look(check)
        new.each { |finding| yield finding } if block_given?
        found.concat(new)
      end
      @stopped = @visit.stopped
      found
    end

    # @return [String] the URL that was looked at, after redirects
    def url = @visit.place.to_s

    # @return [String] without keys and tokens
    def inspect = "#<#{self.class.name} #{url}>"

    private

    # What nobody asked for is said only if it is bad.
    def look(check)
      found = check.new(@visit).call
      @options.wants?(check.id) ? found : found.select { |finding| finding.level == :fail }
    end
  end
end
