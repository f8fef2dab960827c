# frozen_string_literal: true

module Hikyaku
  class Server
    # The Rack environment's `rack.errors`: what is written there becomes lines of the hub's log.
    class ErrorStream
      def initialize(logger)
        @logger = logger
      end

      def puts(*lines) = lines.flatten.each { |line| @logger.error(line.to_s.chomp) }

      def write(*texts)
        puts(*texts)
        texts.sum { |text| text.to_s.bytesize }
      end

      def flush = self
    end
  end
end
