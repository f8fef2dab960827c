# frozen_string_literal: true

# What users of the gem may rely on. It is documented wholly, and has its types in sig/.
module PublicInterface
  NAMES = %w[
    Hikyaku
    Hikyaku::Hub
    Hikyaku::Hub::Update
    Hikyaku::Web
    Hikyaku::Publisher
    Hikyaku::EventSource
    Hikyaku::Config
    Hikyaku::Config::Issuer
    Hikyaku::Server
    Hikyaku::CLI
  ].freeze
end
