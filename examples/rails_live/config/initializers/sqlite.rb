# frozen_string_literal: true

# Before Rails 8, who waits for the database holds up all threads of the process, and perhaps the one that it is waiting for.
module PatientSqlite
  SECONDS = 0.005
  MOST = 2000
  private_constant :SECONDS, :MOST

  private

  def configure_connection
    super
    @raw_connection.busy_handler do |count|
      sleep SECONDS
      count < MOST
    end
  end
end

ActiveSupport.on_load(:active_record_sqlite3adapter) { prepend PatientSqlite }
