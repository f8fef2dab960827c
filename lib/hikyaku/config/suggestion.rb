# frozen_string_literal: true

module Hikyaku
  class Config
    # What somebody probably meant who wrote a name that there is not: a flag, a setting, a variable or a command.
    module Suggestion
      # What other servers and brokers call it.
      ELSEWHERE = {
        "p" => "listen", "port" => "listen", "b" => "listen", "bind" => "listen", "o" => "listen", "host" => "listen", "hostname" => "listen", "ip" => "listen",
        "addr" => "listen", "address" => "listen", "c" => "config", "conf" => "config", "dir" => "storage", "data" => "storage", "data-dir" => "storage",
        "e" => "engine", "verbose" => "log-level", "debug" => "log-level", "q" => "log-level", "quiet" => "log-level", "w" => "threads", "workers" => "threads", "t" => "threads"
      }.freeze
      private_constant :ELSEWHERE

      module_function

      def for(word, known)
        plain = plain(word)
        names = known.reverse.to_h { |name| [plain(name), name] }
        names[ELSEWHERE[plain]] || names[whole(plain, names.keys)] || spelt(word, known) || names[begun(plain, names.keys)]
      end

      def plain(word) = word.downcase.delete_prefix("-").delete_prefix("-").tr("_", "-")

      # The shortest name of which the word is a part.
      def whole(word, names) = names.select { |name| name.split("-").include?(word) }.min_by { |name| [name.size, name] }

      def begun(word, names) = word.empty? ? nil : names.select { |name| name.size > 1 && name.start_with?(word) }.min_by { |name| [name.size, name] }

      def spelt(word, known)
        require "did_you_mean"
        DidYouMean::SpellChecker.new(dictionary: known).correct(word).first
      rescue LoadError
        nil
      end
      private_class_method :plain, :whole, :begun, :spelt
    end
  end
end
