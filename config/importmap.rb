# frozen_string_literal: true

# What the pages of a Rails application with importmap-rails may import; see lib/hikyaku/railtie/assets.rb. Its own
# config/importmap.rb may pin them again.

pin "hikyaku", to: "hikyaku.js", preload: false
pin "hikyaku-presence", to: "hikyaku-presence.js", preload: false
pin "hikyaku-send", to: "hikyaku-send.js", preload: false
pin "hikyaku-msgpack", to: "hikyaku-msgpack.js", preload: false
