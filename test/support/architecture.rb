# frozen_string_literal: true

# What ARCHITECTURE.md says in its table of modules, and what the files under lib/ really do.
module Architecture
  ROOT = File.expand_path("../..", __dir__)
  LIB = File.join(ROOT, "lib")

  # One row of the table: which files it is about, which other rows they may use, which libraries.
  Row = Struct.new(:name, :patterns, :known, :libraries, keyword_init: true) do
    # @param file [String] path below lib/
    def include?(file) = patterns.any? { |pattern| File.fnmatch?(pattern, file, File::FNM_PATHNAME) }

    def anything? = known.include?("anything")

    def may_know?(other) = anything? || other.name == name || known.include?(other.name)

    # @param feature [String] what stands in a `require`
    def may_use?(feature)
      anything? || libraries.any? { |library| feature == library || feature.start_with?("#{library}/") }
    end
  end

  class << self
    # @return [Array<Row>] the table under the heading "Who may know whom"
    def rows
      @rows ||= begin
        section = File.read(File.join(ROOT, "ARCHITECTURE.md"))[/^## Who may know whom$.*?(?=^## |\z)/m].to_s
        section.scan(/^\|(.+)\|$/).flatten.drop(2).map { |line| row(line.split("|").map(&:strip)) }
      end
    end

    # @return [Array<String>] paths below lib/
    def files = @files ||= Dir["**/*.rb", base: LIB].sort

    # @param file [String] path below lib/
    # @return [Row, nil]
    def row_of(file) = rows.find { |row| row.include?(file) }

    # @param row [Row]
    # @return [Array<Row>] itself, what it knows, and what those know: all that is loaded with it
    def reach(row)
      found = [row]
      found.each { |each| rows.each { |other| found << other if each.known.include?(other.name) && !found.include?(other) } }
    end

    # @return [Array<Array(String, String)>] what the file requires by name, and the same as a path below lib/ if it is ours
    def requires(file)
      File.read(File.join(LIB, file)).lines.filter_map do |line|
        case line
        when /^\s*require_relative "([^"]+)"/
          [$1, own("#{File.expand_path($1, File.join(LIB, File.dirname(file)))}.rb")]
        when /^\s*require "([^"]+)"/, /^\s*autoload :\w+, "([^"]+)"/
          [$1, own(File.join(LIB, "#{$1}.rb"))]
        end
      end
    end

    # Loads each list of features in a process of its own.
    #
    # @param lists [Array<Array<String>>]
    # @return [Array<Hash>] features that were loaded besides, `error` and `warnings` of each
    def load_alone(lists)
      paths = $LOAD_PATH.reject { |path| path.start_with?(File.join(ROOT, "test")) } | [LIB]
      command = [{"RUBYOPT" => nil, "RUBYLIB" => nil}, RbConfig.ruby, "-w", *paths.map { |path| "-I#{path}" },
        File.join(__dir__, "load_alone.rb")]
      answers = IO.popen(command, "r+b") do |pipe|
        pipe.write(Marshal.dump(lists))
        pipe.close_write
        pipe.read
      end
      Marshal.load(answers)
    end

    # @param path [String] absolute
    # @return [String, nil] the path below lib/ if it is one of our files
    def own(path) = path.start_with?("#{LIB}/") ? path.delete_prefix("#{LIB}/") : nil

    # @param feature [String] absolute path of something that was loaded
    # @return [String] the gem that it belongs to, or what one would write to require it
    def library(feature)
      return $1 if feature =~ %r{/gems/([^/]+)-\d[^/]*/}
      return $1 if feature =~ %r{/extensions/[^/]+/[^/]+/([^/]+)-\d[^/]*/}

      folder = $LOAD_PATH.select { |path| feature.start_with?("#{path}/") }.max_by(&:size)
      (folder ? feature.delete_prefix("#{folder}/") : feature).delete_suffix(".rb").delete_suffix(".so")
    end

    private

    def row(cells)
      name, patterns, known, libraries = cells
      Row.new(name: name, patterns: patterns.scan(/`([^`]+)`/).flatten, known: known.split(/,\s*/),
        libraries: libraries.scan(/`([^`]+)`/).flatten)
    end
  end
end
