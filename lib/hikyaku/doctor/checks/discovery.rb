# frozen_string_literal: true

require "uri"
require_relative "../check"
require_relative "../client"

module Hikyaku
  class Doctor
    module Checks
      # Whether a page of the application leads to the hub (Mercure draft-08, section "Hub Discovery").
      class Discovery < Check
        about "the Link of a page"

        LINK = /<([^>]*)>((?:\s*;\s*[a-z*-]+\s*=\s*(?:"(?:[^"\\]|\\.)*"|[^\s",;]+))*)/i
        RELATION = /;\s*rel\s*=\s*(?:"([^"]*)"|([^\s";,]+))/i
        private_constant :LINK, :RELATION

        private

        def perform
          return skipped("not checked: give --page URL, a page that should lead to the hub") unless options.page
          page = page_place
          answer = Client.new(page).request("GET")
          return failed("#{page} answers #{answer.status}", :page) unless answer.status == 200
          judge(page, links(answer["link"].to_s))
        end

        def page_place
          page = Place.new(options.page, connect: options.connect, ca_file: options.ca_file)
          # The address that was given is the hub's; a page elsewhere is where its name leads.
          (page.origin == place.origin) ? page : Place.new(options.page, ca_file: options.ca_file)
        end

        def links(header)
          header.scan(LINK).filter_map do |target, parameters|
            relation = parameters[RELATION] && ($1 || $2)
            target if relation.to_s.downcase.split.include?("mercure")
          end
        end

        def judge(page, targets)
          return failed("#{page} has no Link with rel=\"mercure\"", :discovery) if targets.empty?
          urls = targets.map { |target| URI.join(page.to_s, target).to_s }
          return ok("#{page} leads to the hub") if urls.any? { |url| place.same?(url) }
          failed("#{page} leads to #{Words.quote(urls.first)}, not to #{place}", :discovery)
        rescue URI::Error
          failed("#{page} has a Link to what is no URL: #{Words.quote(targets.first)}", :discovery)
        end
      end
    end
  end
end
