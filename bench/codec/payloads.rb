# frozen_string_literal: true

module Bench
  # The objects of the codec's responses: the same at each start.
  module Payloads
    # The generator of Park and Miller: the same numbers for the same seed.
    class Numbers
      MODULUS = 2_147_483_647
      private_constant :MODULUS

      def initialize(seed) = @state = seed

      def below(limit) = (@state = @state * 48_271 % MODULUS) % limit

      def one_of(list) = list[below(list.size)]
    end

    WORDS = %w[
      amber basin cedar delta ember fjord grove harbor inlet juniper kettle lagoon meadow nectar orchid pebble quarry ridge saffron timber
      umbra valley willow yarrow zephyr
    ].freeze
    private_constant :WORDS

    class << self
      def names = ALL.keys

      def fetch(name) = ALL.fetch(name).call(Numbers.new(17))

      def titles = TITLES

      def sentence(numbers, words) = Array.new(words) { numbers.one_of(WORDS) }.join(" ").capitalize

      def time(seconds) = Time.at(seconds).utc.strftime("%Y-%m-%dT%H:%M:%S.000Z")

      private

      def within_a_year(numbers) = 1_735_689_600 + numbers.below(31_536_000)

      # The paper's kind of Hash: large and nested, 17 kB in MessagePack, of which gzip leaves a ninth. The state of a player in a game.
      def paper(numbers)
        {
          status: "ok", version: 3, server_time: 1_387_617_600,
          player: {id: 104_729, name: "amber", level: 42, coins: 128_400, premium: false, guild: {id: 77, name: "harbor", rank: 3}},
          decks: Array.new(2) { |number| {deck_id: number + 1, name: "deck #{number + 1}", leader: {card_id: 1_000 + number, slot: 0}} },
          cards: Array.new(87) { |number| card(number, numbers) },
          quests: Array.new(16) { |number| {quest_id: 500 + number, area: number / 4, cleared: number < 11, reward: {kind: "coins", amount: 100}} }
        }
      end

      def card(number, numbers)
        {
          card_id: 1_000 + number, rarity: 1 + number % 5, level: 1 + numbers.below(8), locked: number.zero?, favorite: false,
          status: {attack: 100 + 10 * numbers.below(8), defense: 100, speed: 10},
          skill: {skill_id: 1 + number % 6, level: 1, max_level: 10, active: true},
          equipment: {weapon: nil, armor: nil, accessory: nil}, acquired_at: 1_387_500_000 + number * 600
        }
      end

      # A list of a model's records.
      def records(numbers)
        Array.new(200) do |number|
          name = "#{numbers.one_of(WORDS)} #{numbers.one_of(WORDS)}"
          {
            "id" => 10_000 + number, "name" => name, "email" => "#{name.tr(" ", ".")}@example.com", "price" => (numbers.below(100_000) / 100.0),
            "quantity" => numbers.below(50), "active" => numbers.below(10) > 1, "note" => numbers.below(4).zero? ? sentence(numbers, 8) : nil,
            "created_at" => time(within_a_year(numbers)), "updated_at" => time(within_a_year(numbers))
          }
        end
      end

      # An API's response with nested associations.
      def nested(numbers)
        {
          "total" => 312, "page" => 2, "links" => {"self" => "https://api.example.com/issues?page=2", "next" => "https://api.example.com/issues?page=3"},
          "items" => Array.new(25) { |number| issue(number, numbers) }
        }
      end

      def issue(number, numbers)
        {
          "id" => 7_000_000 + numbers.below(100_000), "number" => 900 - number, "url" => "https://api.example.com/issues/#{900 - number}",
          "title" => sentence(numbers, 6), "state" => numbers.one_of(%w[open closed]), "author" => person(numbers),
          "assignees" => Array.new(numbers.below(3)) { person(numbers) }, "body" => sentence(numbers, 60), "created_at" => time(within_a_year(numbers)),
          "labels" => Array.new(numbers.below(4)) { label(numbers) },
          "milestone" => number.even? ? {"id" => 12, "title" => "spring", "due_on" => "2026-03-31"} : nil,
          "reactions" => {"total" => numbers.below(20), "up" => numbers.below(9), "down" => numbers.below(4)}
        }
      end

      def label(numbers) = {"id" => numbers.below(900), "name" => numbers.one_of(WORDS), "color" => format("%06x", numbers.below(1 << 24))}

      def person(numbers)
        login = "#{numbers.one_of(WORDS)}#{numbers.below(1_000)}"
        {"id" => numbers.below(1_000_000), "login" => login, "avatar_url" => "https://avatars.example.com/#{login}.png", "admin" => false}
      end

      # A sensor's values: a walk in small steps, every ten seconds.
      def series(numbers)
        value = 20.0
        {
          "sensor" => "harbor-7", "unit" => "°C", "from" => 1_767_225_600, "step" => 10,
          "values" => Array.new(4_000) { value = (value + (numbers.below(41) - 20) / 100.0).round(2) }
        }
      end
    end

    ALL = {"paper" => method(:paper), "records" => method(:records), "nested" => method(:nested), "series" => method(:series)}.freeze
    TITLES = {
      "paper" => "the paper's kind", "records" => "200 records", "nested" => "a nested answer", "series" => "a series of 4,000 numbers"
    }.freeze
    private_constant :ALL, :TITLES
  end
end
