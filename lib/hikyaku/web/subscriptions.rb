# frozen_string_literal: true

require "json"
require_relative "request"
require_relative "problem"

module Hikyaku
  class Web
    # The subscription API: who listens to what.
    #
    # Mercure draft-08, section "Subscription API"; for 0.x clients, the section of the same name there.
    class Subscriptions
      # One answer: what is listed, and whether it is for 0.x clients.
      Selection = Struct.new(:type, :pattern, :subscriber, :legacy, keyword_init: true)
      private_constant :Selection

      def initialize(hub, authenticator, config)
        @hub = hub
        @authenticator = authenticator
        @legacy = config.legacy
        @root = hub.documents.root
      end

      def call(request)
        access = @authenticator.subscriber(request, anonymous: false)
        topic = @hub.topics[request.path]
        @authenticator.forbidden!("the token does not grant subscribing to #{request.path}") unless access.subscribe?(topic)
        selection = select(request.path, access) or raise Problem.new(404, "there is no such collection of subscriptions")
        last_event_id, documents = @hub.subscriptions(type: selection.type, pattern: selection.pattern, subscriber: selection.subscriber)
        raise Problem.new(404, "there is no such subscription") if selection.subscriber && documents.empty?
        respond(request, selection, documents, last_event_id || "earliest")
      end

      private

      # The address of the collection of all is the same in 0.x: there the token says which form is meant.
      def select(path, access)
        return unless path == @root || path.start_with?("#{@root}/")
        segments = path.delete_prefix(@root).split("/", -1).drop(1)
        return Selection.new(legacy: access.legacy?) if segments.empty?
        names = segments.map { |segment| URLEncodedForm.text(segment) or return nil }
        if Hub::Matcher::TYPES.include?(names[0]) && names.size.between?(2, 3)
          Selection.new(type: names[0], pattern: names[1], subscriber: names[2])
        elsif @legacy && names.size <= 2 && names.none?(&:empty?)
          Selection.new(type: Hub::Matcher::LEGACY_TYPE, pattern: names[0], subscriber: names[1], legacy: true)
        end
      end

      def respond(request, selection, documents, last_event_id)
        etag = %("#{LinkHeader.etag(last_event_id)}")
        headers = {
          "etag" => etag,
          "cache-control" => "must-revalidate",
          "link" => LinkHeader.hub(@hub.hub_url, last_event_id: last_event_id, type: "mercure", content_type: "application/json")
        }
        return [304, headers, []] if known?(request.header("HTTP_IF_NONE_MATCH"), etag)
        document = selection.subscriber ? documents.first : collection(request.path, documents)
        document = legacy(document, documents, last_event_id) if selection.legacy
        body = JSON.generate(document)
        headers["content-type"] = selection.legacy ? "application/ld+json" : "application/json"
        headers["content-length"] = body.bytesize.to_s
        [200, headers, (request.method == "HEAD") ? [] : [body]]
      end

      # RFC 9110, section 13.1.2: a list of tags, weak or not, or any.
      def known?(tags, etag) = !tags.nil? && (tags.strip == "*" || tags.scan(/"[^"]*"/).include?(etag))

      def collection(path, documents) = {id: path, type: "subscriptions", subscriptions: documents}

      def legacy(document, documents, last_event_id)
        document = document.merge("@context": "https://mercure.rocks/", lastEventID: last_event_id)
        return document unless document.key?(:subscriptions)
        document.merge(type: "Subscriptions", subscriptions: documents.map { |subscription| legacy_member(subscription) })
      end

      def legacy_member(document)
        return document.except(:@context) if document.key?(:topic)
        document.merge(type: "Subscription", topic: document[:match])
      end
    end

    # Link header values (RFC 8288) and entity tags (RFC 9110, section 8.8.3) that carry event ids.
    #
    # Mercure draft-08, section "Hub Discovery".
    module LinkHeader
      module_function

      # The value of a `Link` header that leads to a hub.
      def hub(url, last_event_id: nil, type: nil, content_type: nil)
        attributes = {"last-event-id" => last_event_id, "type" => type, "content-type" => content_type}.compact
        ["<#{url.gsub(/[<>\s]/) { |c| format("%%%02X", c.ord) }}>", %(rel="mercure"), *attributes.map { |name, value| %(#{name}="#{quote(value)}") }].join("; ")
      end

      def etag(id)
        id.b.gsub(/[^\x21\x23\x24\x26-\x7e]/n) { |byte| format("%%%02X", byte.ord) }.force_encoding(Encoding::UTF_8)
      end

      def quote(value) = value.gsub(/["\\]/) { |character| "\\#{character}" }

      private_class_method :quote
    end
  end
end
