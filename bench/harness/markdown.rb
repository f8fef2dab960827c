# frozen_string_literal: true

module Bench
  # Tables that read well as text and as a page.
  module Markdown
    # @param head [Array<#to_s>]
    # @param rows [Array<Array<#to_s>>]
    # @return [String] ending with a line feed
    def self.table(head, rows)
      cells = [head, *rows].map { |row| row.map { |cell| cell.to_s.gsub("|", "\\|") } }
      widths = cells.transpose.map { |column| column.map(&:size).max }
      lines = cells.map { |row| "| #{row.zip(widths).map { |cell, width| cell.ljust(width) }.join(" | ")} |\n" }
      lines.insert(1, "|#{widths.map { |width| "-" * (width + 2) }.join("|")}|\n").join
    end
  end
end
