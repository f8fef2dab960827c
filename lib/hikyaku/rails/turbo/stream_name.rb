# frozen_string_literal: true

require_relative "signed_name"

module Hikyaku
  module Turbo
    # Put before Turbo::Streams::StreamName: the names that are signed from now on expire. It verifies them as before.
    module StreamName
      def signed_stream_name(streamables) = SignedName.make(stream_name_from(streamables))
    end
  end
end
