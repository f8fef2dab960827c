# frozen_string_literal: true

# A made-up language model. It knows a few sentences, and goes from a word to one that has followed it.
class LanguageModel
  TEXT = "A courier leaves the city at dawn. The road to the west is long and the rivers have no bridges. At every post a fresh " \
    "runner waits for the box. The runner takes the box and the courier rests. Nobody opens the box on the road. When the rain " \
    "comes the ferry waits and the letters wait with the ferry. A letter that waits is not lost. The last runner knocks at the " \
    "door and the letter has arrived. The city sleeps and the road does not."
  FOLLOWERS = TEXT.scan(/[\w']+|\./).each_cons(2).each_with_object(Hash.new { |words, word| words[word] = [] }) { |(word, other), words| words[word] << other }.freeze
  TOKENS = (24..60)
  private_constant :TEXT, :FOLLOWERS, :TOKENS

  # @param pause [Numeric] seconds between two tokens
  def initialize(pause: 0.04)
    @pause = pause
  end

  # @param question [String] of which it understands nothing
  # @yieldparam token [String] with the space before it
  def answer(question)
    dice = Random.new(question.sum)
    word = "."
    space = ""
    dice.rand(TOKENS).times do
      word = FOLLOWERS.fetch(word).sample(random: dice)
      yield((word == ".") ? word : "#{space}#{word}")
      space = " "
      sleep @pause
    end
    yield "." unless word == "."
  end
end
