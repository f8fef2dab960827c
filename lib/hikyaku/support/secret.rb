# frozen_string_literal: true

module Hikyaku
  # What every secret must have.
  module Secret
    # White space of any kind, and what nobody sees: the no-break space, say, and U+200B.
    NOTHING = /\A(?:[\0[:space:]]|\p{Cf}|\p{Default_Ignorable_Code_Point})*+\z/
    # Of what is no UTF-8.
    NO_BYTES = /\A[\0\s]*+\z/n
    private_constant :NOTHING, :NO_BYTES

    # An HMAC fills its key up with zero bytes (RFC 2104 section 2): nothing but those is the empty key, which everybody knows.
    def self.empty?(secret)
      text = secret.dup.force_encoding(Encoding::UTF_8)
      text.valid_encoding? ? text.match?(NOTHING) : secret.b.match?(NO_BYTES)
    end
  end
end
