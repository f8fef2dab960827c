# frozen_string_literal: true

require "test_helper"
require "support/journal_vectors"
require_relative "../../vectors/journal/make"

class JournalVectorsTest < Minitest::Test
  test "the files of the vectors are what their script makes" do
    made = JournalVector.all.to_h { |vector| ["#{vector.name}.txt", vector.to_s] }
    there = Dir.children(JournalVectors::FOLDER).grep(/\.txt\z/)
    assert_equal made.keys.sort, there.sort
    made.each { |name, text| assert_equal text, File.read(File.join(JournalVectors::FOLDER, name)), name }
  end

  test "a journal opens or is refused, and its records are in files that it has" do
    JournalVectors.all.each do |vector|
      assert vector.opens.nil? ^ vector.corrupt.nil?, vector.name
      vector.records.each do |_, _, _, segment, offset, body|
        assert_equal body, vector.files.fetch(format("journal-%020d.seg", segment)).byteslice(offset, body.bytesize), vector.name
      end
    end
  end
end
