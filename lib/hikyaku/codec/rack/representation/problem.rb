# frozen_string_literal: true

require "json"

module Hikyaku
  module Codec
    module Rack
      module Representation
        # What a client is told that accepts nothing of what is offered, or sent what cannot be read (RFC 9457).
        module Problem
          TITLES = {400 => "Bad Request", 406 => "Not Acceptable"}.freeze
          private_constant :TITLES

          module_function

          def not_acceptable(formats, headers = {}, head: false)
            offered = formats.map(&:media_type).uniq
            response(406, "this is offered as #{offered.join(" or ")}: send a field Accept that allows one of them", headers, head: head, offered: offered)
          end

          def response(status, detail, headers = {}, head: false, **more)
            body = ::JSON.generate({type: "about:blank", title: TITLES.fetch(status), status: status, detail: detail, **more})
            fields = {"content-type" => "application/problem+json", "content-length" => body.bytesize.to_s, "cache-control" => "no-store"}
            [status, headers.merge(fields), head ? [] : [body]]
          end
        end
      end
    end
  end
end
