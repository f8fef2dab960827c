# frozen_string_literal: true

require_relative "part"

module Suite
  # What the arguments of bin/test ask for.
  class Selection
    # @param arguments [Array<String>] names of parts, test files or folders; from the first that starts
    #   with "-" on they belong to Minitest
    def initialize(arguments)
      @names = arguments.take_while { |argument| !argument.start_with?("-") }
      @minitest = arguments.drop(@names.size)
    end

    # @return [Array<Part>]
    # @raise [ArgumentError] names the argument that is neither
    def parts
      known = Parts.all
      return known.values.flatten if @names.empty? && @minitest.empty?
      return [Parts.process("files", Dir["test/**/*_test.rb"], @minitest)] if @names.empty?

      named, paths = @names.partition { |name| known.key?(name) }
      parts = known.values_at(*named).flatten
      parts << Parts.process("files", paths.flat_map { |path| files(path) }.uniq, @minitest) if paths.any?
      parts
    end

    private

    def files(path)
      return [path] if File.file?(path)
      return Dir["#{path.chomp("/")}/**/*_test.rb"] if File.directory?(path)

      raise ArgumentError, "#{path} is neither a file nor a part; the parts are #{Parts.all.keys.join(", ")}"
    end
  end
end
