# frozen_string_literal: true

require "test_helper"
require "fileutils"
require "open3"
require "rbconfig"
require "tmpdir"

# What happens where the engine in C cannot be compiled, and what the compiled file shows of itself.
class BuildTest < Minitest::Test
  ROOT = File.expand_path("../..", __dir__)
  EXTCONF = File.join(ROOT, "ext/hikyaku/extconf.rb")
  # Without what Bundler has put there.
  CLEAN = {"RUBYOPT" => nil, "RUBYLIB" => nil, "MAKEFLAGS" => nil}.freeze

  def setup = @folder = Dir.mktmpdir("hikyaku-build")

  def teardown = FileUtils.remove_entry(@folder)

  def run_there(*command, **env) = Open3.capture2e(CLEAN.merge(env.transform_keys(&:to_s)), *command, chdir: @folder)

  # What `gem install` runs after extconf.rb.
  def make
    skip_unless_available("make")
    %w[clean all install].each do |target|
      output, status = run_there("make", target)
      assert status.success?, output
    end
    assert_empty Dir[File.join(@folder, "**/*.so")]
  end

  test "with no compiler nothing is compiled, and the gem is installed all the same" do
    output, status = run_there(RbConfig.ruby, EXTCONF, PATH: @folder)
    assert status.success?, output
    assert_includes output, "native engine is not compiled, because there is no C compiler that works; without it, use the one in Ruby: Hikyaku.start(engine: \"ruby\"), " \
      "config.hikyaku.engine = \"ruby\" in Rails, or --engine ruby"
    make
  end

  test "another Ruby than CRuby compiles nothing" do
    output, status = run_there(RbConfig.ruby, "-e", "Object.__send__(:remove_const, :RUBY_ENGINE); RUBY_ENGINE = 'jruby'; load #{EXTCONF.inspect}")
    assert status.success?, output
    assert_match(/it is for CRuby, not for jruby/, output)
    make
  end

  test "a system without epoll compiles nothing" do
    script = "require 'mkmf'; def have_header(name, *) = name != 'sys/epoll.h'; load #{EXTCONF.inspect}"
    output, status = run_there(RbConfig.ruby, "-e", script)
    assert status.success?, output
    assert_match(%r{this system has no sys/epoll.h; it is for Linux}, output)
    make
  end

  test "without zlib's headers it is compiled all the same, without what takes them, and that is said" do
    header = File.join(@folder, "no_zlib.rb")
    File.write(header, "require 'mkmf'; module NoZlib; def have_header(name, *) = name != 'zlib.h' && super; end; Object.prepend(NoZlib)")
    output, status = run_there(RbConfig.ruby, "-r#{header}", EXTCONF)
    assert status.success?, output
    assert_match(/without zlib and its headers \(Debian: zlib1g-dev\) the native engine is compiled all the same, and compresses no streams; in a Dockerfile: RUN apt-get update && apt-get install --yes zlib1g-dev, before bundle install/, output)
    makefile = File.read(File.join(@folder, "Makefile"))
    assert_includes makefile, "hk_gzip.o"
    refute_match(/HK_HAVE_ZLIB|-lz\b/, makefile)
  end

  test "whoever asks for an engine that was not compiled is told what to do" do
    lib = File.join(ROOT, "lib")
    FileUtils.cp_r(File.join(lib, "hikyaku"), @folder)
    FileUtils.rm(File.join(@folder, "hikyaku/native.so"))
    script = "begin; require 'hikyaku/hub/native_engine'; rescue Hikyaku::Error => error; puts error.class, error.message; end"
    paths = [@folder] + $LOAD_PATH.reject { |path| File.exist?(File.join(path, "hikyaku/native.so")) }
    output, = run_there(RbConfig.ruby, *paths.map { |path| "-I#{path}" }, "-e", script)
    name, message = output.lines(chomp: true)
    assert_equal "Hikyaku::NativeUnavailable", name
    assert_match(%r{\Athe engine in C is not there .*: choose the one in Ruby .*--engine ruby\), or install a C compiler and then this gem again}, message)
  end

  test "the binding compiles without a warning" do
    compilers = %w[gcc clang].filter_map { |name| Availability.path_of(name) }
    skip "there is neither gcc nor clang" if compilers.empty?
    headers = RbConfig::CONFIG.values_at("rubyhdrdir", "rubyarchhdrdir").flat_map { |folder| ["-isystem", folder] }
    strict = %w[-Wall -Wextra -Wconversion -Wshadow -Wstrict-prototypes -Werror -Wno-unused-parameter]
    compilers.each do |compiler|
      output, status = run_there(compiler, "-fsyntax-only", "-std=gnu11", "-D_GNU_SOURCE", "-O1", *strict, *headers, *Dir["#{ROOT}/ext/hikyaku/engine/{,*/}"].map { |folder| "-I#{folder}" },
        *Dir[File.join(ROOT, "ext/hikyaku/binding/*.c")])
      assert status.success?, output
    end
  end

  test "the compiled file exports nothing but what loads it" do
    nm, = skip_unless_available("nm")
    names, = Open3.capture2(nm, "-D", "--defined-only", File.join(ROOT, "lib/hikyaku/native.so"))
    assert_equal ["Init_native"], names.lines.map { |line| line.split.last }.grep_v(/\A_(init|fini)\z/)
  end

  test "what gem install leaves behind is the engine without symbols, and nothing that it was made of" do
    skip_unless_available("make")
    packed = File.join(@folder, "hikyaku.gem")
    output, status = Open3.capture2e(CLEAN, "gem", "build", "--output", packed, "hikyaku.gemspec", chdir: ROOT)
    assert status.success?, output
    home = File.join(@folder, "home")
    output, status = run_there("gem", "install", "--local", "--ignore-dependencies", "--no-document", "--install-dir", home, packed, HIKYAKU_SYMBOLS: nil)
    assert status.success?, output
    made = Dir[File.join(home, "**/*.{o,so,a}")].map { |path| path.delete_prefix("#{home}/").sub(/-\d[\d.]+(?=\/)/, "") }
    assert_equal ["gems/hikyaku/lib/hikyaku/native.so"], made.grep(%r{\Agems/})
    assert_empty made.grep_v(%r{\A(?:gems|extensions)/.*/hikyaku/native\.so\z})
    assert_equal %w[binding depend engine extconf.rb], Dir.children(Dir[File.join(home, "gems/*/ext/hikyaku")].first).sort
    nm, = skip_unless_available("nm")
    symbols, = Open3.capture2e(nm, Dir[File.join(home, "gems/*/lib/hikyaku/native.so")].first)
    assert_match(/no symbols/, symbols)
  end

  test "every source and header is in the gem, and nothing that was compiled" do
    files = Dir.chdir(ROOT) { Gem::Specification.load("hikyaku.gemspec").files }
    sources = Dir[File.join(ROOT, "ext/hikyaku/**/*.{c,h}")].map { |file| file.delete_prefix("#{ROOT}/") }
    assert_empty sources - files
    assert_empty files.grep(/\.(so|o)\z/)
    assert_includes files, "ext/hikyaku/extconf.rb"
  end
end
