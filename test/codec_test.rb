# frozen_string_literal: true

require "test_helper"
require "open3"
require "hikyaku/codec"

class CodecTest < Minitest::Test
  Codec = Hikyaku::Codec

  test "formats are had by name" do
    assert_equal ["application/json", "application/vnd.msgpack"], %i[json msgpack].map { |name| Codec[name].media_type }
    assert_same Codec[:msgpack], Codec["mpac"]
    assert_same Codec[:json], Codec["json"]
    assert_equal %w[application/vnd.msgpack application/msgpack application/x-msgpack application/x-mpac], Codec[:mpac].media_types
    assert_equal %i[json msgpack], Codec.formats.map(&:name)
    assert Codec.formats.all?(&:frozen?)
  end

  test "a format that is not known is refused by name" do
    error = assert_raises(Codec::UnknownFormat) { Codec[:xml] }
    assert_equal "the format \"xml\" is not known; json, msgpack and mpac (the same) are", error.message
    assert_operator assert_raises(Codec::UnknownFormat) { Codec["x" * 10_000] }.message.size, :<, 150
    assert_raises(Codec::UnknownFormat) { Codec[nil] }
  end

  # Without any gem, with the json that came with this Ruby, which may be an old one.
  test "without any gem there is JSON, with all its limits, and it is said which gem is missing" do
    script = <<~'RUBY'
      require "hikyaku/codec"
      codec = Hikyaku::Codec
      format = codec[:json]
      refused = ->(text) { format.load(text) rescue $!.class.name[/\w+\z/] }
      p codec.formats.map(&:name), codec.negotiate("application/vnd.msgpack, */*;q=0.1").name
      p refused.('{"a":[{"b":1}]}'), refused.('[{"a":1,"a":2}]'), refused.("[" * 101), refused.("[NaN]"), refused.("[1e999]"), refused.('["\ud800"]')
      p refused.('[{"a":{}}]').first.class
      puts format.dump({c: [1.5, :b, Time.at(0, in: "UTC"), 2**70], a: 1, "a" => [{1 => nil}]}), (format.dump([[[], {a: 0.0 / 0}]]) rescue $!.message)
      %i[msgpack].each { |name| puts((codec[name] rescue "#{$!.class}: #{$!.message}")) }
    RUBY
    output, status = Open3.capture2e({"RUBYOPT" => nil, "RUBYLIB" => nil}, RbConfig.ruby, "--disable-gems", "-W0", "-Ilib", "-e", script)
    assert status.success?, output
    assert_equal <<~TEXT, output
      [:json]
      :json
      {"a"=>[{"b"=>1}]}
      "Malformed"
      "TooLarge"
      "Malformed"
      "Malformed"
      "Malformed"
      Hash
      {"c":[1.5,"b","1970-01-01T00:00:00.000Z",1180591620717411303424],"a":[{"1":null}]}
      this cannot be represented at $[0][1].a: it is NaN, which is no number in JSON: send nil, or text
      Hikyaku::Codec::Unavailable: MessagePack needs the gem msgpack: add `gem "msgpack", ">= 1.8.3"` to the Gemfile
    TEXT
  end
end
