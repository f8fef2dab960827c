# frozen_string_literal: true

module Hikyaku
  module Codec
    module Reading
      # What the first byte of a value in MessagePack says: https://github.com/msgpack/msgpack/blob/master/spec.md, "Formats".
      #
      # `width` is the number of bytes that follow it and hold a number, `directive` how they are unpacked; without them the number is `immediate`.
      Form = Struct.new(:name, :kind, :width, :directive, :immediate)

      # By the first byte; nil for 0xc1, which is none.
      FORMS = Array.new(256) { |byte|
        case byte
        when 0x00..0x7f then Form.new("positive fixint", :integer, 0, nil, byte)
        when 0x80..0x8f then Form.new("fixmap", :map, 0, nil, byte & 0x0f)
        when 0x90..0x9f then Form.new("fixarray", :array, 0, nil, byte & 0x0f)
        when 0xa0..0xbf then Form.new("fixstr", :string, 0, nil, byte & 0x1f)
        when 0xc0 then Form.new("nil", :nil, 0, nil, nil)
        when 0xc2, 0xc3 then Form.new((byte == 0xc3).to_s, :boolean, 0, nil, byte == 0xc3)
        when 0xd4..0xd8 then Form.new("fixext #{1 << (byte - 0xd4)}", :extension, 0, nil, 1 << (byte - 0xd4))
        when 0xe0..0xff then Form.new("negative fixint", :integer, 0, nil, byte - 256)
        end
      }.tap { |forms|
        rows = {
          0xc4 => [:binary, "bin", [1, 2, 4]], 0xc7 => [:extension, "ext", [1, 2, 4]], 0xcc => [:integer, "uint", [1, 2, 4, 8]],
          0xd9 => [:string, "str", [1, 2, 4]], 0xdc => [:array, "array", [2, 4]], 0xde => [:map, "map", [2, 4]]
        }
        directives = {1 => "C", 2 => "n", 4 => "N", 8 => "Q>"}
        rows.each do |first, (kind, name, widths)|
          widths.each_with_index { |width, index| forms[first + index] = Form.new("#{name} #{8 * width}", kind, width, directives[width]) }
        end
        {1 => "c", 2 => "s>", 4 => "l>", 8 => "q>"}.each_with_index do |(width, directive), index|
          forms[0xd0 + index] = Form.new("int #{8 * width}", :integer, width, directive)
        end
        forms[0xca] = Form.new("float 32", :float, 4, "g")
        forms[0xcb] = Form.new("float 64", :float, 8, "G")
      }.each(&:freeze).freeze
      private_constant :Form, :FORMS
    end
  end
end
