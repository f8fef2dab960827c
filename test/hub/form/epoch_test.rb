# frozen_string_literal: true

require "test_helper"
require "hikyaku/hub"

class FormEpochTest < Minitest::Test
  extend SentenceTests

  Form = Hikyaku::Hub::Form

  def epoch_of(*positions, former: nil)
    Form::Epoch.new(former).tap { |epoch| positions.each { |position| epoch.add(position, Form::Piece.new(position.to_s, Zlib.crc32(position.to_s))) } }
  end

  test "what was gathered for one is for those who stand where it stood, of the same, and in step if that is needed" do
    epoch = epoch_of(10, 12, 15)
    goes_on = epoch_of(17, former: epoch)
    first, later, next_one = [[epoch, 10], [epoch, 12], [goes_on, 17]].map do |its, position|
      Form::Portion.new.tap { |portion| portion.add(its[position], position, its) }
    end
    first.share(self, 5, 12)
    later.share(self, 10, 12)
    next_one.share(self, 15, 17)
    other = epoch_of(10, 12, 15)
    [5, 9].each { |cursor| [nil, epoch, other].each { |each| assert first.serves?(self, cursor, each, 12) } }
    [[self, 4, nil, 12], [self, 10, nil, 12], [:other, 5, nil, 12], [self, 5, nil, 15]].each { |wanted| refute first.serves?(*wanted) }
    [10, 11].each { |cursor| assert later.serves?(self, cursor, epoch, 12) }
    [[self, 9, epoch], [self, 12, epoch], [self, 10, nil], [self, 10, other], [:other, 10, epoch]].each { |wanted| refute later.serves?(*wanted, 12) }
    assert_equal [true, false, false], [epoch, goes_on, nil].map { |each| next_one.serves?(self, 15, each, 17) }
    assert_equal [nil, epoch, epoch], [first, later, next_one].map(&:within)
  end

  test "a piece of an epoch is for who has all before it, and the first for everybody" do
    epoch = epoch_of(10, 12, 15)
    assert_equal "12", epoch[12].bytes
    [[10, 3, nil], [12, 10, epoch], [15, 13, epoch]].each { |wanted| assert epoch.sends?(*wanted), wanted.inspect }
    [[12, 10, nil], [12, 10, epoch_of(10, 12)], [12, 9, epoch], [15, 11, epoch], [13, 12, epoch]].each { |wanted| refute epoch.sends?(*wanted), wanted.inspect }
    refute_predicate epoch, :full?
    61.times { |i| epoch.add(20 + i, Form::Piece.new("", 0)) }
    assert_predicate epoch, :full?
    large = Form::Epoch.new
    large.add(1, Form::Piece.new("", 0, 65_536))
    assert_predicate large, :full?
    epoch.over!
    refute epoch.sends?(12, 10, epoch)
  end

  test "what goes on from an epoch is for who has all of that, too" do
    former = epoch_of(10, 12)
    epoch = epoch_of(15, 17, former: former)
    [[15, 12, former], [15, 14, former], [17, 15, epoch]].each { |wanted| assert epoch.sends?(*wanted), wanted.inspect }
    [[15, 12, nil], [15, 11, former], [15, 12, epoch_of(12)], [17, 15, former]].each { |wanted| refute epoch.sends?(*wanted), wanted.inspect }
    assert_equal [former, epoch], [15, 17].map { |position| epoch.needed_at(position) }
  end

  test "an epoch knows checksum and length of what was sent up to a cursor, also when it is over" do
    epoch = epoch_of(10, 12, 15).tap(&:over!)
    {9 => "", 10 => "10", 11 => "10", 12 => "1012", 14 => "1012", 15 => "101215", 99 => "101215"}.each do |cursor, text|
      assert_equal [Zlib.crc32(text), text.bytesize], epoch.sum_until(cursor)
    end
  end
end
