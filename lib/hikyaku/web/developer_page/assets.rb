# frozen_string_literal: true

require "openssl"

module Hikyaku
  class Web
    class DeveloperPage
      # The page's files, read once at boot into a fixed table. A name is looked up, never joined to a folder:
      # nothing outside the table can be asked for.
      class Assets
        FOLDER = File.expand_path("page", __dir__)
        TYPES = {
          ".html" => "text/html; charset=utf-8", ".css" => "text/css; charset=utf-8",
          ".js" => "text/javascript; charset=utf-8", ".svg" => "image/svg+xml", ".json" => "application/json"
        }.freeze
        private_constant :FOLDER, :TYPES

        Asset = Struct.new(:bytes, :type, :etag, keyword_init: true)

        def initialize(extra: {})
          files = Dir.children(FOLDER).sort.to_h { |name| [name, File.binread(File.join(FOLDER, name))] }
          @table = files.merge(extra).to_h { |name, bytes| [name, asset(name, bytes)] }
          @table[""] = @table.fetch("index.html")
          @table.freeze
        end

        def [](name) = @table[name]

        def names = @table.keys

        private

        def asset(name, bytes)
          etag = %("#{OpenSSL::Digest::SHA256.hexdigest(bytes)[0, 20]}")
          Asset.new(bytes: bytes.freeze, type: TYPES.fetch(File.extname(name)), etag: etag).freeze
        end
      end
      private_constant :Assets
    end
  end
end
