# frozen_string_literal: true

module Hikyaku
  module Turbo
    # Turbo::StreamsChannel where there is no Action Cable: turbo-rails' own has a superclass that is not there.
    module StandIn
      def self.make
        Class.new { extend ::Turbo::Streams::Broadcasts, ::Turbo::Streams::StreamName }
      end
    end
  end
end
