# frozen_string_literal: true

require_relative "../support/clock"
require_relative "event_source/backoff"
require_relative "event_source/body"
require_relative "event_source/errors"
require_relative "event_source/request"
require_relative "publisher/endpoint"
require_relative "publisher/retries"
require_relative "publisher/token_source"

module Hikyaku
  # Receives Server-Sent Events, from a Mercure hub or any other server, and connects again by itself from the last
  # event that it has.
  #
  #     source = Hikyaku::EventSource.new("https://example.com/.well-known/mercure",
  #       params: {match_urlpattern: "https://example.com/books/:id"}, token: -> { fetch_token })
  #     source.each { |event| puts event.data }     # until source.close in another thread, or break
  #
  # It does what the HTML standard says of EventSource, except where a program knows better than a page:
  #
  # - after the statuses 429 and 500 to 599 it connects again, when `Retry-After` asks for it, in place of giving up;
  #   after 401 it asks a callable token once for another; any other answer that is no event stream raises Refused;
  # - redirects are followed, but not from https to http, and the token stays with the origin of the URL;
  # - a connection on which nothing comes, not even a comment, for `read_timeout` seconds is taken for dead;
  # - failures double the pause before the next attempt, up to `max_retry_seconds`;
  # - a stream may be asked for as MessagePack (`format: :msgpack`), which needs no gem, and compressed (`coding: :gzip`). The events are the same, and
  #   what counts is what the server answers with.
  #
  # HTML standard, section "Server-sent events"; Mercure draft-08, sections "Subscription" and "Reconnection, State
  # Reconciliation, and Event Sourcing"; docs/streams.md.
  class EventSource
    include Support::Clock
    include Enumerable

    # The `last_event_id` before which there is nothing: everything that the hub still has is wanted.
    EARLIEST = "earliest"

    # @return [String] the id of the last event that was given to the block of {#each}, or was skipped because it had no
    #   data; "" when there was none. It is what the next connection asks to go on from
    attr_reader :last_event_id
    # @return [Hash{String => String}, nil] the header of the latest stream, with names in lower case: with a hub,
    #   `mercure-last-event-id` differs from the id that was asked for when events may have been lost
    attr_reader :response_headers

    # @param url [String, URI] `http(s)://HOST/PATH`, `unix:SOCKET` or `unix:SOCKET:/PATH`
    # @param params [Hash, Array] parameters to add, for example `{match: ["a", "b"]}`
    # @param method [Symbol] :get, or :query, which sends the parameters in a body, when they are too long for a URL
    # @param token [String, #call, nil] the access token, or what gives one: it is asked again before the token expires
    #   and after it was refused
    # @param headers [Hash] further request header fields
    # @param last_event_id [String] where to begin
    # @param open_timeout [Numeric] seconds to connect
    # @param read_timeout [Numeric, nil] seconds without a byte after which the connection is taken for dead; more than
    #   the server's heartbeat; nil for never
    # @param retry_seconds [Numeric] pause before connecting again, until the server says otherwise
    # @param max_retry_seconds [Numeric] up to which failures in a row double it
    # @param max_event_bytes [Integer] of one line, of one event's data, and of one value of MessagePack
    # @param format [Symbol] :events for Server-Sent Events, or :msgpack, where the hub has that, and else the former
    # @param coding [Symbol] :identity, or :gzip for a compressed stream, where the hub has that
    # @param on_open [#call, nil] called without arguments when a stream begins
    # @param on_error [#call, nil] called with the error after which a new connection will be tried
    # @param ca_file [String, nil] certificates to trust in place of the system's
    # @param insecure [Boolean] allows a token to travel over plain HTTP to another machine
    # @raise [ConfigError]
    def initialize(url, params: {}, method: :get, token: nil, headers: {}, last_event_id: "", open_timeout: 10, read_timeout: 90,
      retry_seconds: 3, max_retry_seconds: 60, max_event_bytes: 4_194_304, format: :events, coding: :identity,
      on_open: nil, on_error: nil, ca_file: nil, insecure: false)
      endpoint = Publisher::Endpoint.new(url, open_timeout: open_timeout, read_timeout: read_timeout, write_timeout: open_timeout, ca_file: ca_file)
      @tokens = Publisher::TokenSource.new(token)
      @request = Request.new(endpoint, method: method, params: params, headers: headers, format: format, coding: coding)
      endpoint.confidential! if (@tokens.any? || @request.credentials?) && !insecure
      @backoff = Backoff.new(retry_seconds: retry_seconds, max_seconds: max_retry_seconds)
      @format = format
      @max_event_bytes = max_event_bytes
      @last_event_id = last_event_id.to_s
      @on_open = on_open
      @on_error = on_error
      @mutex = Mutex.new
      @wake = ConditionVariable.new
    end

    # Gives the events as they come. Returns after {#close}, or when the server says that there is nothing more (204).
    # One thread at a time; after `break` or an error it may be called again and goes on from {#last_event_id}.
    #
    # @yieldparam event [Event]
    # @return [self, Enumerator]
    # @raise [Refused] the server will not send this stream
    # @raise [EventTooLarge]
    # @raise [AlreadyRead]
    def each(&block)
      return to_enum unless block
      alone do
        until closed?
          wait(stream(&block))
        end
      end
      self
    end

    # Ends {#each}, whichever thread is in it, and for good.
    #
    # @return [void]
    def close
      @mutex.synchronize do
        @closed = true
        @connection&.interrupt
        @wake.broadcast
      end
    end

    # @return [Boolean] whether {#close} was called or the server said that there is nothing more
    def closed? = @mutex.synchronize { @closed ? true : false }

    # @return [String] without token, headers and parameters
    def inspect = "#<#{self.class.name} #{@request}#{" closed" if closed?}>"

    private

    def alone
      @mutex.synchronize do
        raise AlreadyRead, "another thread reads this EventSource: each thread needs one of its own" if @reading
        @reading = true
      end
      begin
        yield
      ensure
        @mutex.synchronize { @reading = false }
      end
    end

    # One connection, from the request to its end.
    #
    # @return [Numeric] seconds until the next
    def stream(&block)
      @outside = false
      token = @tokens.token
      @request.perform(last_event_id: @last_event_id, token: token, use: method(:use)) { |response| receive(response, &block) }
      @backoff.next_pause
    rescue Refused => error
      raise if @outside
      return 0 if error.status == 401 && renewed?(token)
      raise unless error.transient?
      again(error, at_least: error.retry_after)
    rescue Malformed => error
      raise if @outside
      @broken = true
      again(error)
    rescue *Publisher::Endpoint::NETWORK_ERRORS => error
      raise if @outside
      raise Refused, "#{@request} cannot prove who it is: #{error.message}" if error.message.match?(/certificate|hostname/i)
      again(error)
    end

    # Whatever ends the connection, and however the caller leaves, it is closed.
    def use(connection)
      @mutex.synchronize { @connection = connection }
      connection.start
      # Closed while it was being opened: the first read finds the end.
      connection.interrupt if closed?
      yield connection
    ensure
      @mutex.synchronize { @connection = nil }
      connection.discard
    end

    def receive(response, &block)
      case Integer(response.code, 10)
      when 200 then read(response, &block)
      when 204 then close
      else raise Refused.of(response, @request)
      end
    end

    def read(response, &block)
      body = Body.new(response, @request, format: @format, last_event_id: @last_event_id, max_event_bytes: @max_event_bytes)
      @response_headers = response.each_header.to_h.freeze
      # What was broken at one place may be so again: only an event ends that.
      @backoff.reset unless @broken
      @renewed = false
      outside { @on_open&.call }
      response.read_body do |bytes|
        body.feed(bytes) { |event| give(event, &block) }
        @last_event_id = body.last_event_id
        @backoff.retry_seconds = body.retry / 1000.0 if body.retry
      end
    end

    # The event counts as received before its block runs, as in a browser: an event whose block fails does not come again.
    def give(event)
      return if closed?
      @backoff.reset if @broken
      @broken = false
      @last_event_id = event.id
      outside { yield event }
    end

    # Marks what the caller's code raises, so that it is not taken for an error of the network.
    def outside
      @outside = true
      yield
      @outside = false
    end

    def renewed?(token)
      return false if @renewed
      @renewed = @tokens.refused(token)
    end

    def again(error, at_least: nil)
      return 0 if closed?
      @on_error&.call(error)
      @backoff.next_pause(at_least: at_least)
    end

    def wait(seconds)
      deadline = now + seconds
      @mutex.synchronize do
        until @closed || (left = deadline - now) <= 0
          @wake.wait(@mutex, left)
        end
      end
    end
  end
end
