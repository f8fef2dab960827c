# frozen_string_literal: true

# The journals of test/vectors/journal: their README says what the lines mean.
class JournalVectors
  FOLDER = File.expand_path("../vectors/journal", __dir__)

  # A journal of the vectors.
  #
  # `files`: bytes by name; `opens`: number and position, or nil; `corrupt`: name and offset, or nil; `records`: arrays of position,
  # type, flags, segment, offset and body.
  Vector = Struct.new(:name, :files, :opens, :corrupt, :records) do
    def write(folder) = files.each { |name, bytes| File.binwrite(File.join(folder, name), bytes) }
  end

  def self.all = Dir[File.join(FOLDER, "*.txt")].sort.map { |path| read(path) }

  def self.[](name) = read(File.join(FOLDER, "#{name}.txt"))

  def self.read(path)
    vector = Vector.new(File.basename(path, ".txt"), {}, nil, nil, [])
    File.foreach(path, chomp: true) { |line| take(vector, *line.split) unless line.start_with?("#") }
    vector
  end

  def self.take(vector, word, *values)
    case word
    when "file" then vector.files[values[0]] = "\0".b * values[1].to_i
    when "at" then lay(vector.files.values.last, values[0].to_i, bytes(values[1]))
    when "opens" then vector.opens = values.map(&:to_i)
    when "corrupt" then vector.corrupt = [values[0], values[1].to_i]
    when "record" then vector.records << [*values[0..4].map(&:to_i), bytes(values[5])]
    else raise "#{vector.name}: #{word}"
    end
  end

  def self.lay(file, offset, bytes) = file[offset, bytes.bytesize] = bytes

  def self.bytes(text)
    return "".b if text == "-"
    digits, count = text.split("*")
    [digits].pack("H*") * (count || 1).to_i
  end
  private_class_method :take, :lay, :bytes
end
