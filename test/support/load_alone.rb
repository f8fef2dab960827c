# frozen_string_literal: true

# Runs in a Ruby of its own, which has loaded nothing. Reads lists of features (and of constants, which may load
# themselves), loads each list in a fork, and answers with what that has loaded besides. Uses no library itself: one that
# it had loaded would hide a `require` that is missing.
WARNINGS = []
def Warning.warn(message, **) = WARNINGS << message

$stdin.binmode
answers = Marshal.load($stdin.read).each_slice(4).flat_map do |slice|
  slice.map { |features|
    reader, writer = IO.pipe.each(&:binmode)
    Process.fork do
      reader.close
      before = $LOADED_FEATURES.dup
      begin
        features.each { |feature| feature.start_with?(/[A-Z]/) ? Object.const_get(feature) : require(feature) }
      rescue Exception => error # rubocop:disable Lint/RescueException
        message = "#{error.class}: #{error.message}"
      end
      loaded = $LOADED_FEATURES - before
      writer.write(Marshal.dump({loaded: loaded, error: message, warnings: WARNINGS}))
      writer.close
      Process.exit!(0)
    end
    writer.close
    reader
  }.map { |reader| Marshal.load(reader.read) }
end
$stdout.binmode
$stdout.write(Marshal.dump(answers))
