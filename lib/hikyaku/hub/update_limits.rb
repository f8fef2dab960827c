# frozen_string_literal: true

require_relative "../error"

module Hikyaku
  class Hub
    # How large an update may be, by settings of the configuration; one that is not given limits nothing. What is published over HTTP
    # and what the hub's own process publishes have the same limits: an id that no header carries would keep its readers from coming back.
    class UpdateLimits
      SETTINGS = %i[max_request_bytes max_topics max_id_bytes max_type_bytes].freeze
      private_constant :SETTINGS

      def self.of(config) = new(**SETTINGS.to_h { |name| [name, config.public_send(name)] })

      def initialize(**limits)
        @limits = limits.freeze
        freeze
      end

      # Over HTTP the limit of the body refuses what is too large in all first; a publish in this process has no body.
      def check(update)
        check_fields(update.topics, update.id, update.type)
        bytes = [update.data, update.id, update.type, *update.topics].compact.sum(&:bytesize)
        refuse("the update has #{bytes} bytes", :max_request_bytes) if over?(bytes, :max_request_bytes)
      end

      def check_fields(topics, id, type)
        refuse("there are #{topics.size} topics", :max_topics) if over?(topics.size, :max_topics)
        refuse("id has #{id.bytesize} bytes", :max_id_bytes) if id && over?(id.bytesize, :max_id_bytes)
        refuse("type has #{type.bytesize} bytes", :max_type_bytes) if type && over?(type.bytesize, :max_type_bytes)
      end

      private

      def over?(size, setting) = size > @limits.fetch(setting, size)

      def refuse(what, setting) = raise(LimitExceeded, "#{what}, more than the #{@limits[setting]} that #{setting} allows")
    end
  end
end
