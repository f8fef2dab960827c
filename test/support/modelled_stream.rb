# frozen_string_literal: true

# A stream that is changed while it lasts, as it ought to be: with sets of events instead of cursors and layers. It is told what its
# reader has received, and raises where that is not what was to come.
class ModelledStream
  # What was published: its position is its place in the log, beginning with 1.
  Published = Struct.new(:topics, :secret, :id)
  # Of a matcher: behind `from` it is listened to, behind `since` it is known what was sent.
  Member = Struct.new(:from, :since)
  # What had been sent when the stream went back.
  Had = Struct.new(:to, :positions)
  TOPICS = %w[/a /b /c /d/1 /d/2].freeze
  PATTERNS = {"/a" => %r{\A/a\z}, "/b" => %r{\A/b\z}, "/c" => %r{\A/c\z}, "/d/1" => %r{\A/d/1\z}, "/d/:id" => %r{\A/d/\d\z}, "*" => //}.freeze
  LAYERS = 8
  private_constant :Member, :Had

  # @return [Array<String>] topics whose private updates it may read
  attr_reader :reads
  # @return [Integer] how often it was changed, and how often that made it go back
  attr_reader :changes, :rewinds

  # @param log [Array<Published>] which grows
  # @param names [Array<String>] of PATTERNS
  # @param from [Integer] the position behind which it begins
  def initialize(log, names, reads, from)
    @log = log
    @members = names.to_h { |name| [name, Member.new(from, from)] }
    @reads = reads
    @position = from
    @had = []
    @sent = []
    @told = false
    @within = @resumes_at = nil
    @changes = @rewinds = 0
  end

  def names = @members.keys

  # The reader knows that something may be missing from here on.
  def tell = @told = true

  # @param position [Integer] of the event that the reader has now
  # @param retained [Integer] the first position that is
  def received(position, retained)
    if @within
      raise "the rest of #{@within} was to come, not #{position}" if position != @within
      @position = @resumes_at || position
      @within = @resumes_at = nil
    else
      skip(position, retained)
      raise "#{position} was not to come" unless due?(position)
      @told = false
      @sent << position
      @position = position
    end
  end

  # The reader has a part of the next event.
  def begin_event(retained)
    return if @within
    @within = due.find { |position| position >= retained } || due.first
    @sent << @within
  end

  # The engine says that up to here there is nothing for the reader.
  def passed(cursor, retained)
    return if @within
    skip(cursor + 1, retained)
    @position = cursor
  end

  # @return [Boolean] whether a change to these matchers, beginning behind a position, makes it go back
  def rewinds?(names, from) = (names - self.names).any? && from < here

  # @return [Boolean] it may go back no more
  def full? = @had.count { |had| had.to > here } >= LAYERS

  # @param names [Array<String>]
  # @param reads [Array<String>]
  # @param from [Integer] the position behind which those begin that are added
  def change(names, reads, from)
    standing = here
    @changes += 1
    go_back(standing, from) if rewinds?(names, from)
    @members.each_value { |member| member.since = [member.since, standing].max } unless reads == @reads
    @members = names.to_h { |name| [name, @members[name] || Member.new(from, from)] }
    @reads = reads
  end

  # Nothing more comes.
  def finish(retained)
    left = due.select { |position| position >= retained }.to_a
    raise "#{left} never came" if left.any?
  end

  private

  def here = @within ? @resumes_at || @within : @position

  def go_back(standing, from)
    known = @sent.select do |position|
      position <= standing && admits?(position) && @members.any? { |name, member| member.since < position && selects?(name, position) }
    end
    @rewinds += 1
    @had.reject! { |had| had.to <= standing }
    @had << Had.new(standing, known)
    @members.each_value { |member| member.from = [member.from, standing].max }
    @within ? @resumes_at = from : @position = from
  end

  def due = (@position + 1..@log.size).lazy.select { |position| due?(position) }

  def due?(position)
    @members.any? { |name, member| member.from < position && selects?(name, position) } && admits?(position) &&
      @had.none? { |had| position <= had.to && had.positions.include?(position) }
  end

  def selects?(name, position) = @log[position - 1].topics.any? { |topic| PATTERNS.fetch(name).match?(topic) }

  def admits?(position) = !@log[position - 1].secret || @log[position - 1].topics.any? { |topic| @reads.include?(topic) }

  # What is left out is lost, and the reader was told.
  def skip(position, retained)
    expected = due.take_while { |each| each < position }.to_a
    raise "#{expected} were to come before #{position}" if expected.any? && (!@told || expected.last >= retained)
  end
end
