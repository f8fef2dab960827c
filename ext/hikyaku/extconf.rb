# frozen_string_literal: true

# Makes hikyaku/native.so of the engine (engine/) and of what Ruby sees of it (binding/).
#
# Where that cannot be, nothing is compiled and the gem is installed all the same: its hub in Ruby needs no compiler. Whoever
# asks for the native engine then is told so (Hikyaku::NativeUnavailable).
#
#   HIKYAKU_SANITIZE=address,undefined   compiles with sanitizers, for tests
#   HIKYAKU_STRICT=1                     makes an error of every warning
#   HIKYAKU_SYMBOLS=1                    keeps the symbols, for debuggers and profilers

# Compiles nothing, and says why.
def go_without(reason)
  warn "hikyaku: the native engine is not compiled, because #{reason}; without it, use the one in Ruby: Hikyaku.start(engine: \"ruby\"), " \
    "config.hikyaku.engine = \"ruby\" in Rails, or --engine ruby"
  File.write("Makefile", ".PHONY: all install clean distclean\nall install clean distclean:\n\t@:\n")
  exit
end

go_without "it is for CRuby, not for #{RUBY_ENGINE}" unless RUBY_ENGINE == "ruby"

begin
  require "mkmf"
rescue SystemExit
  go_without "Ruby's headers are not installed (Debian calls them ruby-dev)"
end

begin
  missing = %w[sys/epoll.h sys/eventfd.h pthread.h stdatomic.h].reject { |header| have_header(header) }
rescue RuntimeError
  go_without "there is no C compiler that works"
end
go_without "this system has no #{missing.join(", ")}; it is for Linux" if missing.any?
go_without "this Ruby has no rb_nogvl" unless have_func("rb_nogvl", "ruby/thread.h")
compresses = have_header("zlib.h") && have_library("z", "crc32_z")
unless compresses
  warn "hikyaku: without zlib and its headers (Debian: zlib1g-dev) the native engine is compiled all the same, and compresses no streams; in a Dockerfile: " \
    "RUN apt-get update && apt-get install --yes zlib1g-dev, before bundle install"
end

# mkmf is told in global variables.
# rubocop:disable Style/GlobalVars

# Base names are unique: all objects lie in one folder.
folders = [*Dir["engine/*/", base: $srcdir].map { |folder| folder.chomp("/") }.sort, "engine", "binding"]
$srcs = folders.flat_map { |folder| Dir[File.join($srcdir, folder, "*.c")] }.sort
$VPATH.concat(folders.map { |folder| "$(srcdir)/#{folder}" })
$INCFLAGS += folders.map { |folder| " -I$(srcdir)/#{folder}" }.join
# Ruby's headers, as those of the system: their warnings are not ours.
$INCFLAGS += " -isystem $(hdrdir) -isystem $(arch_hdrdir)"

$warnflags = "-Wall -Wextra -Wconversion -Wshadow -Wstrict-prototypes -Wno-unused-parameter"
$warnflags += " -Werror" if ENV["HIKYAKU_STRICT"]
$CFLAGS += " -std=gnu11 -D_GNU_SOURCE -fvisibility=hidden -pthread"
$DLDFLAGS += " -pthread"
$defs << "-DHK_HAVE_ZLIB" if compresses

if (sanitizers = ENV["HIKYAKU_SANITIZE"])
  $CFLAGS += " -fsanitize=#{sanitizers} -fno-omit-frame-pointer -fno-sanitize-recover=all -O1 -g"
  # Ruby's exceptions leave frames in a way that the sanitizer does not see: what it had marked on the stack stays marked.
  # The tests of the engine alone look at the stack, too.
  stack = ["--param=asan-stack=0 --param=asan-instrument-allocas=0", "-mllvm -asan-stack=0"].find { |flags| try_cflags(flags) }
  $CFLAGS += " #{stack}" if stack
  $DLDFLAGS += " -fsanitize=#{sanitizers}"
end

strip = "-Wl,--strip-all"
$DLDFLAGS += " #{strip}" if !ENV["HIKYAKU_SYMBOLS"] && !ENV["HIKYAKU_SANITIZE"] && try_ldflags(strip)

# rubocop:enable Style/GlobalVars

create_makefile("hikyaku/native")
# RubyGems leaves the folder in which it has compiled where it is. From 3.5 on it comes back for `make clean`, and fails where no Makefile is left for that.
last = (Gem::Version.new(Gem::VERSION) < Gem::Version.new("3.5")) ? "$(RM) Makefile" : "touch installed"
File.write("Makefile", <<~MAKE, mode: "a")

  install: leave-nothing
  clean: leave-no-makefile
  .PHONY: leave-nothing leave-no-makefile
  leave-nothing: install-so install-rb
  	-$(Q)$(RM) $(OBJS) $(DLLIB) .*.time
  	-$(Q)#{last}
  leave-no-makefile: clean-so
  	-$(Q)test ! -e installed || $(RM) installed Makefile
MAKE
