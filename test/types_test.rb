# frozen_string_literal: true

require "test_helper"
require "open3"
require "rbs"
require "support/documentation"
require "support/public_interface"

# The types in sig/ say what lib/ does: nothing is missing, nothing is invented, and what the tests really pass fits.
class TypesTest < Minitest::Test
  SIG = File.join(Architecture::ROOT, "sig")
  LIBRARIES = %w[logger openssl stringio uri].freeze
  # Test files that are run with every call checked against the signatures, and the names of those of their tests that
  # give what no signature allows, to see it refused (or a Hash
  # last, which the checker takes for keywords, or what gives each thing once, which the checker takes for itself).
  RUN_WITH_TYPES = {
    "test/hub/update_test.rb" => /no_string/,
    "test/config_test.rb" => nil,
    "test/client/publisher_test.rb" => /misuse|streams_of_a_subject|becomes_JSON/,
    "test/web/token_maker_test.rb" => nil,
    "test/protocol/publication_test.rb" => nil,
    "test/protocol/subscription_api_test.rb" => nil,
    "test/protocol/revocation_test.rb" => nil,
    "test/client/publisher/hikyaku_hub_test.rb" => /every_field/,
    "test/client/event_source_test.rb" => nil,
    "test/cli/doctor_test.rb" => nil,
    "test/broker/address_test.rb" => /no_address/,
    "test/broker/client_test.rb" => /wrong_message/,
    "test/broker/client/receiver_test.rb" => /subscriptions_come_back|credit_is_set/,
    "test/http/parser_test.rb" => /vectors|without_bounds|have_names/,
    "test/http/client_test.rb" => /a_stream_gives|number_above_0/,
    "test/codec/accept_test.rb" => nil,
    "test/codec/message_pack_test.rb" => nil,
    "test/http/response_test.rb" => nil,
    "test/http/cache_test.rb" => nil,
    "test/codec/coding_test.rb" => /levels_of/,
    "test/codec/rack/compression_test.rb" => nil,
    "test/codec/rack/representation_test.rb" => nil
  }.freeze

  def self.definitions
    @definitions ||= begin
      loader = RBS::EnvironmentLoader.new
      loader.add(path: Pathname(SIG))
      LIBRARIES.each { |library| loader.add(library: library, version: nil) }
      RBS::DefinitionBuilder.new(env: RBS::Environment.from_loader(loader).resolve_type_names)
    end
  end

  PublicInterface::NAMES.each do |name|
    test "the types of #{name} name its public methods, and no others" do
      type = RBS::TypeName.parse("::#{name}")
      assert_same_methods name, PublicInterface.methods_of(name, :instance), self.class.definitions.build_instance(type)
      assert_same_methods name, PublicInterface.methods_of(name, :singleton), self.class.definitions.build_singleton(type)
    end
  end

  test "the calls that unit tests make fit the types" do
    targets = (PublicInterface::NAMES - %w[Hikyaku]).join(",")
    env = {"RBS_TEST_TARGET" => targets, "RBS_TEST_RAISE" => "true", "RBS_TEST_LOGLEVEL" => "error",
           "RBS_TEST_OPT" => "-I sig #{LIBRARIES.map { |library| "-r #{library}" }.join(" ")}", "CI" => nil}
    RUN_WITH_TYPES.each do |file, refused|
      output, status = Open3.capture2e(env, RbConfig.ruby, "-Itest", "-Ilib", "-rrbs/test/setup", file, *(["-e", refused.inspect] if refused), chdir: Architecture::ROOT)
      assert status.success?, "#{file}:\n#{output}"
      assert_match(/\b[1-9]\d* runs/, output)
    end
  end

  private

  def assert_same_methods(name, real, definition)
    typed = definition.methods.select { |_, method| method.accessibility == :public && method.defined_in&.to_s == "::#{name}" }.keys
    assert_empty real - typed, "#{name}: not in sig/"
    assert_empty typed - real - %i[new initialize], "#{name}: only in sig/"
  end
end
