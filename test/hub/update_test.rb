# frozen_string_literal: true

require "test_helper"
require "hikyaku/hub/update"

class UpdateTest < Minitest::Test
  def update(**fields) = Hikyaku::Hub::Update.new(topics: "/a", **fields)

  test "an update is immutable and knows its fields (draft-08, Publication)" do
    update = Hikyaku::Hub::Update.new(topics: ["/a", "/b"], data: "x", private: true, id: "urn:1", type: "note", retry_after: "0050")
    assert update.frozen?
    assert_equal [["/a", "/b"], "x", true, "urn:1", "note", 50],
      [update.topics, update.data, update.private?, update.id, update.type, update.retry_after]
  end

  test "empty ids and types count as none" do
    assert_nil update(id: "").id
    assert_nil update(type: "").type
  end

  {
    "an id that begins with #" => {id: "#1"},
    "the id earliest" => {id: "earliest"},
    "an id with a line break" => {id: "a\nb"},
    "an id with a bidi control" => {id: "a\u202Eb"},
    "the type mercure" => {type: "mercure"},
    "a type with a line break" => {type: "a\rb"},
    "a type with a zero-width space" => {type: "a\u200Bb"},
    "a retry that is not digits" => {retry_after: "5s"},
    "a negative retry" => {retry_after: -1},
    "a retry with a line break" => {retry_after: "5\n"},
    "a retry in other digits" => {retry_after: "٥"},
    "a retry of thousands of years" => {retry_after: "9" * 40},
    "data that is not UTF-8" => {data: "\xff"},
    "an id that is not UTF-8" => {id: "\xff"},
    "data that is no string" => {data: 5}
  }.each do |what, fields|
    test "#{what} is refused (draft-08, Publication)" do
      error = assert_raises(Hikyaku::InvalidUpdate) { update(**fields) }
      assert_match(/\A#{fields.keys.first.to_s.delete_suffix("_after")} /, error.message)
    end
  end

  test "topics are needed, and must be allowed ones" do
    assert_raises(Hikyaku::InvalidUpdate) { Hikyaku::Hub::Update.new(topics: []) }
    assert_raises(Hikyaku::InvalidTopic) { Hikyaku::Hub::Update.new(topics: "*") }
    assert_raises(Hikyaku::InvalidTopic) { Hikyaku::Hub::Update.new(topics: ["/a", "b\u0000"]) }
    assert_raises(Hikyaku::LimitExceeded) { Hikyaku::Hub::Update.new(topics: "a" * 5000) }
  end

  test "bytes from a socket are taken as UTF-8, other encodings are converted" do
    assert_equal "é", update(data: "é".b).data
    assert_equal "é", update(data: "é".encode("ISO-8859-1")).data
  end

  test "a string that the caller changes later changes nothing" do
    data = +"before"
    update = update(data: data)
    data << " after"
    assert_equal "before", update.data
  end
end
