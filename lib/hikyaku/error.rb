# frozen_string_literal: true

module Hikyaku
  # Marks every error that Hikyaku raises on purpose: `rescue Hikyaku::Error` catches them all,
  # whichever standard class they extend.
  module Error
  end

  # A topic that the protocol does not allow. The message names the topic and the reason.
  class InvalidTopic < ArgumentError
    include Error
  end

  # A topic matcher that cannot be understood, or not within the limits. The message names the matcher.
  class InvalidMatcher < ArgumentError
    include Error
  end

  # An update with a field that the protocol does not allow. The message names the field.
  class InvalidUpdate < ArgumentError
    include Error
  end

  # Something is larger, longer or more numerous than its limit. The message names the limit.
  class LimitExceeded < ArgumentError
    include Error
  end

  # A setting that is missing, unknown or contradicts another. The message names the setting.
  class ConfigError < ArgumentError
    include Error
  end

  # An access token that does not pass validation. The message says why, for logs and for the
  # operator; a client is only told `invalid_token`.
  class InvalidToken < StandardError
    include Error
  end

  # A publish that did not reach the hub, or that the hub refused.
  class PublishError < StandardError
    include Error
  end
end
