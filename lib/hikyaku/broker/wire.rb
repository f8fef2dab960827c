# frozen_string_literal: true

require_relative "wire/builders"
require_relative "wire/code"
require_relative "wire/frames"
require_relative "wire/properties"
require_relative "wire/reader"
require_relative "wire/type"
require_relative "wire/violation"

module Hikyaku
  module Broker
    # The broker's protocol as bytes (docs/protocol.md): what builds frames, and what takes them apart.
    module Wire
      extend Builders
    end
  end
end
