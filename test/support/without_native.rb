# frozen_string_literal: true

# What a machine without a compiler does, as a Mac is: there the engine in C is not there. Also the file that makes it so, for Ruby's -r.
module WithoutNative
  OPTION = "-r#{__FILE__}"

  def require(name) = (name == "hikyaku/native") ? raise(LoadError, "no extension") : super
end
Object.prepend(WithoutNative) if ENV["RUBYOPT"].to_s.include?(WithoutNative::OPTION)
