# frozen_string_literal: true

require_relative "../../test_helper"
require_relative "../turbo"

module Hikyaku
  module Turbo
    # Put before ActionCable::SubscriptionAdapter::Test, where Action Cable's assertions look, and those of rspec-rails: what was
    # published to a stream of Turbo's is there too, as Action Cable would have sent it.
    module TestAdapter
      # Servers of system tests broadcast while the test looks.
      LOCK = Mutex.new
      private_constant :LOCK

      # Without effect where there is no Action Cable.
      def self.install
        ::ActionCable::SubscriptionAdapter::Test.prepend(self) if defined?(::ActionCable)
      end

      def broadcasts(stream_name)
        super.concat(unread(stream_name.to_s))
      end

      def clear_messages(stream_name)
        unread(stream_name.to_s)
        super
      end

      def clear
        LOCK.synchronize { @read = Hash.new(Hikyaku::TestHelper.recorder.updates.last) }
        super
      end

      private

      def unread(stream_name)
        LOCK.synchronize do
          @read ||= {}
          updates = Hikyaku::TestHelper.recorder.updates
          last = updates.rindex { |update| update.equal?(@read[stream_name]) }
          @read[stream_name] = updates.last
          topic = Turbo.topic(stream_name)
          updates.drop(last ? last + 1 : 0).filter_map { |update| ActiveSupport::JSON.encode(update.data) if update.topics.include?(topic) }
        end
      end
    end
  end
end
