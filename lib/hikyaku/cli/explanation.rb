# frozen_string_literal: true

require "json"
require_relative "../cli"

module Hikyaku
  module CLI
    # What Web::Authorization#explain says of a token, for people to read.
    class Explanation
      MARKS = {true => "ok", false => "NO"}.freeze
      private_constant :MARKS

      def initialize(results)
        @results = results
      end

      def to_s
        [part("Header", @results.first[:header]), part("Claims", @results.first[:claims]), *@results.map { |result| verdict(result) }].compact.join("\n\n")
      end

      private

      def part(title, object)
        "#{title}:\n#{indent(CLI.plain(JSON.pretty_generate(object)))}" if object
      end

      def verdict(result)
        title = "As a #{result[:role]}'s token: #{result[:valid] ? "accepted" : "refused"}#{" (Mercure 0.x)" if result[:legacy]}"
        [title, *(result[:valid] ? permits(result) : checks(result))].join("\n")
      end

      # Those that could not be made any more say nothing.
      def checks(result)
        result[:checks].reject { |check| check[:ok].nil? }
          .map { |check| "  #{MARKS.fetch(check[:ok])}  #{check[:check]}: #{CLI.printable(check[:message])}" }
      end

      def permits(result)
        action = (result[:role] == :publisher) ? :publish : :subscribe
        granted = result[:permits][action]
        return ["  It permits nothing: it grants no topic to #{action}#{" to" if action == :publish}."] if granted.empty?
        ["  It permits to #{action} to:"] + granted.map { |one| "    #{CLI.printable(one[:pattern])} (#{one[:type]})#{" with payload #{CLI.plain(JSON.generate(one[:payload]))}" if one[:payload]}" }
      end

      def indent(text) = text.gsub(/^/, "  ")
    end
  end
end
