# frozen_string_literal: true

require "digest"

module Hikyaku
  module Codec
    module Rack
      module Representation
        # A strong entity tag of one representation, and whether the client has it.
        #
        # RFC 9110, sections 8.8.3 and 13.1.2.
        module EntityTag
          MOST_BYTES = 8_192
          OPAQUE = /"[\x21\x23-\x7E\x80-\xFF]*"/n
          ANY = "*"
          private_constant :MOST_BYTES, :OPAQUE, :ANY

          module_function

          def of(format, bytes)
            digest = Digest::SHA256.new
            digest << format.name.to_s << "\0" << bytes
            %("#{digest.hexdigest.byteslice(0, 32)}")
          end

          # Compared weakly, as the section says: a proxy that compresses makes a weak tag of a strong one.
          def match?(field, tag)
            return false if field.nil? || field.bytesize > MOST_BYTES
            field.strip == ANY || field.b.scan(OPAQUE).include?(tag.b.delete_prefix("W/"))
          end
        end
      end
    end
  end
end
