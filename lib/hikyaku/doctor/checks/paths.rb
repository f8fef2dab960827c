# frozen_string_literal: true

require_relative "../check"

module Hikyaku
  class Doctor
    module Checks
      # Whether all of the hub is there: what lies below its path, and every method.
      class Paths < Check
        about "all paths and methods"

        # Nobody's: they are refused by the hub, or by who does not pass them on.
        BELOW = {"GET" => "subscriptions", "POST" => "streams/doctor", "DELETE" => "subscribers/doctor"}.freeze
        private_constant :BELOW

        private

        def perform
          return skipped("not checked: this hub does not refuse as Hikyaku does, so who answers cannot be told") unless visit.hikyaku?
          lost = BELOW.reject { |method, path| hub?(method, "#{place.path.chomp("/")}/#{path}") }.map { |method, path| "#{method} …/#{path[/\A\w+/]}" }
          lost << "HEAD" unless passed?(client.request("HEAD"))
          findings = lost.empty? ? [] : [warning("the hub does not get all that is sent to it: #{Words.list(lost)} is answered by something else", :paths, lost: lost)]
          findings << query
          findings.compact.empty? ? ok("what is below #{place.path}, and each method, gets to the hub") : findings
        end

        def hub?(method, target) = passed?(client.request(method, target, form: ([] if method == "POST")))

        # By now the hub has been seen to answer with problem documents; HEAD has none to show, but its type.
        def passed?(answer) = answer.problem?

        def query
          answer = client.request("QUERY", form: [])
          warning("QUERY, with which clients send more matchers than a URL holds, is answered #{answer.status} by something else", :query) unless passed?(answer)
        end
      end
    end
  end
end
