# frozen_string_literal: true

require_relative "../../codec"
require_relative "form"
require_relative "multipart"

module Hikyaku
  module HTTP
    class Request
      # What a caller gives to be sent, as a body and what is said of it.
      module Content
        TYPE = "content-type"
        URLENCODED = "application/x-www-form-urlencoded"
        private_constant :TYPE, :URLENCODED

        class << self
          def of(headers, body:, json:, form:)
            given = {body: body, json: json, form: form}.compact.keys
            raise ArgumentError, "#{given.map { |name| "#{name}:" }.join(" and ")} are given; a request has one body" if given.size > 1
            return labelled(headers, Codec[:json].media_type, Codec[:json].dump(json)) if form.nil?
            pairs = Form.pairs(form, :form)
            return labelled(headers, URLENCODED, Form.encode(pairs)) if pairs.none? { |_, value| Form.file?(value) }
            multipart(headers, Multipart.new(pairs))
          end

          def query(params) = Form.encode(Form.pairs(params, :params))

          private

          def multipart(headers, multipart)
            raise ArgumentError, "a form with files says its content-type itself: it has the boundary" if said?(headers)
            labelled(headers, multipart.content_type, multipart.body)
          end

          def labelled(headers, type, body) = [said?(headers) ? headers : [*headers, [TYPE, type]], body]

          def said?(headers) = headers.any? { |name, _| TYPE.casecmp?(name.to_s) }
        end
      end
    end
  end
end
