# frozen_string_literal: true

threads 3
port ENV.fetch("PORT", 3000)
workers ENV.fetch("WEB_CONCURRENCY", 0)

# For Mercure clients that subscribe with QUERY; EventSource uses GET.
supported_http_methods Puma::Const::SUPPORTED_HTTP_METHODS + ["QUERY"]
