# frozen_string_literal: true

module Hikyaku
  module Turbo
    # For controllers that render pages: knows the newest event from before the page's data were read. What happens while the
    # page is made, on its way, and until it listens, is after it.
    module PageCursor
      private

      # Around everything else that the controller does.
      def process_action(*)
        # With a hub in another process this costs a question: not for what is no page.
        hikyaku_cursor if request.get_header("HTTP_ACCEPT").to_s.include?("html")
        super
      end

      # The newest event when this was asked first.
      def hikyaku_cursor
        return @hikyaku_cursor if defined?(@hikyaku_cursor)
        @hikyaku_cursor = hikyaku_last_event_id
      end
    end
  end
end
