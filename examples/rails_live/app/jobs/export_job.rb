# frozen_string_literal: true

class ExportJob < ApplicationJob
  # @param pause [Numeric] seconds that a piece takes
  def perform(export, pause: 0.1)
    until export.finished?
      sleep pause # where a real one would work
      export.update!(done: export.done + 1)
    end
  end
end
