# frozen_string_literal: true

module Hikyaku
  module HTTP
    class Client
      class PipeliningPolicy
        # How many answers a server gives on one connection, as far as it told or was seen to; and when that turns out to be wrong.
        class RequestLimit
          # How it was learnt: the server said so, it closed, or it said nothing any more.
          WAYS = {"word" => :word, "closing" => :closing, "silence" => :silence}.freeze
          HIGHEST = 1_000_000
          FIELD = /\bmax\s*=\s*(\d{1,6})/i
          private_constant :WAYS, :HIGHEST, :FIELD

          attr_reader :most

          def initialize(record = {})
            @most = @way = @closed_after = nil
            set(Integer(record["most"]).clamp(1, HIGHEST), WAYS.fetch(record["seen_by"], :word)) if record["most"]
          end

          # An answer came that may say how many follow it.
          def met(response)
            limit = response["keep-alive"].to_s[FIELD, 1]
            set([limit.to_i + 1, 2].max, :word) if limit && @most.nil?
          end

          # See {PipeliningPolicy#closed_after}.
          def closed_after(count, told: true)
            set(count, told ? :word : :closing) if count.positive? && (told || count == @closed_after)
            @closed_after = count
          end

          # The server gave so many answers, and then none.
          def silent_after(count)
            set(count, :silence) if count.positive?
          end

          # It was not the number that was at fault.
          def forgive
            set(nil, nil) if @way == :silence
          end

          # The server kept a connection open with that answer: if it said once that so many are all, that was for another reason.
          def kept_open(count)
            set(nil, nil) if @way == :word && count >= @most
          end

          # A connection still stood long after that answer: a server that closes after so many had closed it.
          def outlasted(count)
            set(nil, nil) if @way && @way != :silence && count >= @most
          end

          def record = {"most" => @most, "seen_by" => @way&.to_s}

          private

          def set(most, way)
            @most = most
            @way = way
          end
        end
      end
    end
  end
end
