# frozen_string_literal: true

require "securerandom"
require_relative "../../../support/clock"
require_relative "patience"

module Hikyaku
  class Outbox
    module Claims
      # Rows carry the name of a courier, and until when they are its: for databases without row locks. After a courier that
      # has died the others wait until then.
      class Leasing
        include Support::Clock

        SECONDS = 10
        # Of the lease, in which nothing new is begun: clocks differ.
        MARGIN = 2
        private_constant :SECONDS, :MARGIN

        def initialize(rows, connection)
          @rows = rows
          Patience.teach(connection)
        end

        def take(limit)
          ids = free.where.not(origin: busy).order(:id).limit(limit).ids
          return if ids.empty?
          lease = SecureRandom.alphanumeric(16)
          deadline = now + SECONDS - MARGIN
          free.where(id: ids).update_all(lease: lease, leased_until: Time.now + SECONDS)
          leased = @rows.where(id: ids.first..ids.last, lease: lease)
          taken = leased.order(:id).to_a
          yield taken, -> { now < deadline } unless taken.empty?
        ensure
          leased&.update_all(lease: nil, leased_until: nil)
        end

        private

        # Processes of which another courier has rows: theirs have to wait in any case.
        def busy = @rows.waiting.where(leased_until: Time.now..).distinct.pluck(:origin)

        def free = @rows.waiting.merge(@rows.where(leased_until: nil).or(@rows.where(leased_until: ..Time.now)))
      end
    end
  end
end
