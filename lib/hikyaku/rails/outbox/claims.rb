# frozen_string_literal: true

require_relative "claims/leasing"
require_relative "claims/locking"

module Hikyaku
  class Outbox
    # How a courier makes rows its own, so that several can work at once.
    module Claims
      # Since when MySQL and MariaDB skip locked rows; PostgreSQL has since 9.5, which Active Record asks for anyway.
      MYSQL = "8.0.1"
      MARIADB = "10.6.0"
      private_constant :MYSQL, :MARIADB

      def self.for(rows, connection) = skips_locked?(connection) ? Locking.new(rows) : Leasing.new(rows, connection)

      def self.skips_locked?(connection)
        case connection.adapter_name
        when /postg/i then true
        when /mysql|trilogy/i then connection.database_version >= (connection.mariadb? ? MARIADB : MYSQL)
        else false
        end
      end
      private_class_method :skips_locked?
    end
  end
end
