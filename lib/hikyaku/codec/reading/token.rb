# frozen_string_literal: true

module Hikyaku
  module Codec
    module Reading
      # One step through a body: a value without parts, the beginning of an array or a map, or its end.
      #
      # `kind` is :nil, :boolean, :integer, :float, :number (digits as they stand in JSON), :string, :binary, :extension (its value is type and bytes), :array,
      # :map or :end. `offset` is where it begins in the body and `form` how the bytes have it ("str 8"). An array or a map has as its value the number of its
      # entries, which nobody has verified; nil where the body does not say it.
      Token = Struct.new(:kind, :value, :offset, :form)
    end
  end
end
