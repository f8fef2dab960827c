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
        near(word, known.to_h { |name| [name, name] }) || near("--#{plain(word)}", flags(known))
      rescue LoadError
        nil
      end

      # Names without dashes as they would be with them: two letters alone are near to nothing.
      def flags(known) = known.reject { |name| name.start_with?("-") }.to_h { |name| ["--#{plain(name)}", name] }

      def near(word, names) = names[DidYouMean::SpellChecker.new(dictionary: names.keys).correct(word).first]
      private_class_method :plain, :whole, :begun, :spelt, :flags, :near
    end
  end
end
