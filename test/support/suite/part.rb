# frozen_string_literal: true

require "rbconfig"

module Suite
  # One part of what bin/test does: a name, and the commands that run one after the other.
  #
  # `tests` says that its last command is a test process, whose report is then expected.
  Part = Struct.new(:name, :commands, :tests, keyword_init: true)

  # The parts, in the order in which they are started; the long ones come first.
  module Parts
    RUBY = RbConfig.ruby
    UNIT_PROCESSES = 2
    # What takes up to a minute on any machine, most of it waiting: all at once.
    SOAK = %w[rotation soak timeouts].map { |name| "test/integration/native_#{name}_test.rb" }.freeze
    # What has its engines or its one engine, whichever the others are tried with.
    ALONE = %w[engines_alike puma_plugin puma_ruby_engine puma_worker_death].map { |name| "test/integration/#{name}_test.rb" }.freeze
    # What the process on the engine in C is put through with sanitizers, too.
    SANITIZED = (%w[http limits revocation smoke soak stop].map { |name| "test/integration/native_#{name}_test.rb" } +
      %w[process total_queue].map { |name| "test/integration/broker_#{name}_test.rb" }).freeze

    # What a browser, a client or a proxy sees alike with either engine: test/protocol has each engine's every answer.
    ONCE_OUTSIDE = [*%w[broker_examples browser_event_source client_vectors codec_compression deployment_guide http_client_servers nginx node_event_source ruby_clients]
      .map { |name| "test/integration/#{name}_test.rb" }, "test/readme_test.rb"].freeze
    ONCE = (%w[both_ways_guide client_firefox client_turbo from_action_cable javascript_guide presence proxy representations testing_guide ticker_examples turbo_guide] +
      %w[bookshop live live_processes meeting processes].map { |name| "rails_#{name}" }).map { |name| "test/system/#{name}_test.rb" }.freeze

    # What turbo-rails does differently where Action Cable is there too.
    CABLE_ALONE = %w[test/rails/turbo_cable_class_test.rb].freeze
    CABLE = %w[broadcasting cable_class commit page refresh test_helper].map { |name| "test/rails/turbo_#{name}_test.rb" }.freeze
    # What has a database server of its own, and gems beside the others'.
    POSTGRESQL = %w[test/rails/outbox_postgresql_test.rb].freeze
    # The other versions of Rails that this Ruby can run; bin/test-matrix has the rest.
    RAILS = {"7.1" => "gemfiles/rails_7_1.gemfile"}.freeze

    class << self
      # @return [Hash{String => Array<Part>}] parts by name; a name may stand for several processes
      def all
        {
          "browser" => [*over_engines("browser", *(Dir["test/system/**/*_test.rb"] - ONCE)), tests("browser once", *ONCE)],
          "soak" => [process("soak", SOAK, env: {"MT_CPU" => SOAK.size.to_s})],
          "integration" => [*over_engines("integration", *(Dir["test/integration/**/*_test.rb"] - native - ALONE - ONCE_OUTSIDE - doctor)),
            tests("integration once", *ONCE_OUTSIDE)],
          "puma" => [process("puma", ALONE)],
          # Mostly waiting.
          "doctor" => [process("doctor", doctor, env: {"MT_CPU" => "8"})],
          "native" => [process("native", native - SOAK)],
          "sanitized" => [process("sanitized", SANITIZED, env: {"HIKYAKU_TEST_SANITIZED" => "1", "HIKYAKU_TEST_SOAK_SECONDS" => "12"})],
          "rails" => rails,
          "postgresql" => [process("postgresql", POSTGRESQL)],
          "javascript" => [tests("javascript", "test/javascript/**/*_test.rb")],
          "engine" => [engine],
          "unit" => units,
          "protocol" => [*over_engines("protocol", "test/protocol/**/*_test.rb"),
            tests("protocol Puma", "test/protocol/**/*_test.rb", env: {"HIKYAKU_TEST_SERVER" => "puma"})],
          "contract" => [process("contract", contracts)],
          "lint" => [Part.new(name: "lint", commands: [%w[standardrb --no-fix]])],
          "types" => [types],
          "docs" => [docs],
          "architecture" => [tests("architecture", "test/architecture_test.rb", "test/style_test.rb")]
        }
      end

      # @return [Part] a test process over these files
      def process(name, files, arguments = [], env: {})
        load_all = "ARGV.shift(ARGV.index(%(--))).each { |file| require File.expand_path(file) }; ARGV.shift"
        command = [*([env] unless env.empty?), RUBY, "-Itest", "-Ilib", "-e", load_all, "--", *files.sort, "--", *arguments]
        Part.new(name: name, commands: [command], tests: true)
      end

      private

      # Of a process on the engine in C.
      def native = Dir["test/integration/native_*_test.rb"]

      # What waits for hubs and bad proxies: it is no question of the engine.
      def doctor = Dir["test/doctor_test.rb", "test/doctor/**/*_test.rb", "test/integration/thruster_test.rb"]

      def tests(name, *patterns, env: {}) = process(name, Dir[*patterns], env: env)

      # The same tests over the engine in C and over the one in Ruby.
      def over_engines(name, *patterns)
        [tests(name, *patterns), tests("#{name} Ruby", *patterns, env: {"HIKYAKU_TEST_ENGINE" => "ruby"})]
      end

      # Rails changes Ruby's own classes: not beside other tests.
      def rails
        files = Dir["test/rails/**/*_test.rb"] - POSTGRESQL - CABLE_ALONE
        cable = {"HIKYAKU_TEST_CABLE" => "1"}
        others = RAILS.flat_map do |version, gemfile|
          env = {"BUNDLE_GEMFILE" => File.expand_path(gemfile)}
          [process("rails #{version}", files, env: env), process("rails #{version} and cable", CABLE_ALONE, env: env.merge(cable))]
        end
        [process("rails", files), *others, process("rails and cable", CABLE, env: cable)]
      end

      def types
        tests("types", "test/types_test.rb").tap { |part| part.commands.unshift(%w[rbs -I sig -r logger -r openssl -r stringio -r uri validate]) }
      end

      def docs
        yard = %w[yard doc --no-output --no-cache --no-save --no-progress --quiet --fail-on-warning]
        tests("docs", "test/documentation_test.rb").tap { |part| part.commands.unshift(yard) }
      end

      # The engine in C: rules that its sources keep, then its tests.
      def engine
        tests("engine", "test/engine/**/*_test.rb").tap { |part| part.commands << [RUBY, "test/support/suite/engine.rb"] }
      end

      # What holds for every engine: the files that run a contract of test/contracts over one.
      def contracts = Dir["test/**/*_test.rb"].select { |file| File.read(file).match?(/^require "contracts\//) }

      # Every test file that has no part of its own, dealt out by size to processes of about the same length.
      def units
        own = contracts + doctor + Dir["test/{system,integration,protocol,rails,engine,javascript}/**/*_test.rb",
          "test/{architecture,style,readme,types,documentation}_test.rb"]
        shares = Array.new(UNIT_PROCESSES) { [] }
        (Dir["test/**/*_test.rb"] - own).sort_by { |file| -File.size(file) }.each do |file|
          shares.min_by { |share| share.sum { |each| File.size(each) } } << file
        end
        shares.each_with_index.map { |files, index| process("unit #{index + 1}", files) }
      end
    end
  end
end
