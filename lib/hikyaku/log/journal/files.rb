# frozen_string_literal: true

module Hikyaku
  module Log
    class Journal
      # The system calls of a journal, in one folder: so that a test can let the n-th one fail, record what was done, and
      # replay what a power cut would have left of it. Twin of hk_files. Each raises what the system says (Errno).
      #
      # Names are relative to the folder. Any thread may call, two never with one file but `sync_data` beside `write`.
      class Files
        attr_reader :path

        def initialize(path)
          @path = File.expand_path(path) # the process may go elsewhere
          @folder = File.open(path, File::RDONLY)
        end

        def list = Dir.children(@path)

        def create(name) = File.open(at(name), File::CREAT | File::EXCL | File::RDWR | File::BINARY, 0o600)

        def open(name) = File.open(at(name), File::RDONLY | File::BINARY)

        def reopen(name) = File.open(at(name), File::RDWR | File::BINARY)

        def lock(name)
          file = File.open(at(name), File::CREAT | File::RDWR, 0o600)
          return file if file.flock(File::LOCK_EX | File::LOCK_NB)
          file.close
          nil
        end

        def size(file) = file.size

        def linked?(file) = file.stat.nlink > 0

        def in_place?
          named = File.stat(@path)
          open = @folder.stat
          [named.dev, named.ino] == [open.dev, open.ino]
        rescue Errno::ENOENT, Errno::ENOTDIR
          false
        rescue SystemCallError
          true # that cannot be told
        end

        def read(file, size, offset)
          again { file.pread(size, offset) }
        rescue EOFError
          "".b
        end

        def write(file, bytes, offset) = again { file.pwrite(bytes, offset) }

        # Writes all of it.
        def write_all(file, bytes, offset)
          done = write(file, bytes, offset)
          while done < bytes.bytesize
            more = write(file, bytes.byteslice(done..), offset + done)
            raise Errno::EIO if more == 0
            done += more
          end
        end

        # Not IO#fdatasync: where that fails, Ruby calls fsync instead, which may succeed over pages that are lost.
        def sync_data(file)
          again { file.fsync }
          nil
        end

        def sync(file)
          again { file.fsync }
          nil
        end

        # What was created, renamed and unlinked in the folder.
        def sync_folder
          again { @folder.fsync }
          nil
        end

        def rename(from, to)
          File.rename(at(from), at(to))
          nil
        end

        def unlink(name)
          File.unlink(at(name))
          nil
        end

        def close(file)
          file.close
          nil
        end

        def close_folder
          @folder.close
          nil
        end

        private

        def at(name) = File.join(@path, name)

        # A signal that came between is no failure.
        def again
          yield
        rescue Errno::EINTR
          retry
        end
      end
    end
  end
end
