# frozen_string_literal: true

module Hikyaku
  module Codec
    module Plain
      # Something in an object that cannot be represented. On its way up it gathers where it was.
      class Refusal < StandardError
        SHOWN = 6
        LONGEST = 40
        private_constant :SHOWN, :LONGEST

        def initialize(what)
          @path = []
          super
        end

        def below(key)
          @path << key
          self
        end

        def sentence = "this cannot be represented at $#{where}: #{message}"

        private

        def where
          steps = @path.reverse
          shown = steps.first(SHOWN).map { |key| key.is_a?(Integer) ? "[#{key}]" : ".#{name(key)}" }
          shown.join + ((steps.size > SHOWN) ? " and #{steps.size - SHOWN} levels below" : "")
        end

        def name(key) = key.to_s.dup.force_encoding(Encoding::UTF_8).scrub("?").inspect[1..-2][0, LONGEST]
      end
    end
  end
end
