# frozen_string_literal: true

require "test_helper"
require "hikyaku/cli"
require "stringio"

# Runs a command in this process.
module CommandLine
  Result = Struct.new(:code, :out, :err)

  def hikyaku(*argv, env: {}, stdin: "")
    out = StringIO.new
    err = StringIO.new
    code = Hikyaku::CLI.run(argv, stdin: StringIO.new(stdin), stdout: out, stderr: err, env: env)
    Result.new(code, out.string, err.string)
  end

  # The one line of a command that was given in a wrong way.
  def refused(*argv, code: 2, **options)
    result = hikyaku(*argv, **options)
    assert_equal code, result.code, result.err
    assert_empty result.out
    assert_equal 1, result.err.lines.size, result.err
    assert result.err.start_with?("hikyaku: "), result.err
    result.err.delete_prefix("hikyaku: ").chomp
  end

  def done(*argv, **options)
    result = hikyaku(*argv, **options)
    assert_equal [0, ""], [result.code, result.err]
    result.out
  end
end
