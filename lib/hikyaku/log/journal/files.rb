# frozen_string_literal: true

module Hikyaku
  module Log
    class Journal
      # The system calls of a journal, in one folder: so that a test can let the n-th one fail, record what was done, and
      # replay what a power cut would have left of it. Twin of hk_files. Each raises what the system says (Errno).
      #
      # Names are relative to the folder. Any thread may call, two never with one file but `sync_data` beside `write`.
      class Files
        # @return [String] the folder
        attr_reader :path

        # @param path [String] of a folder that exists
        def initialize(path)
          @path = File.expand_path(path) # the process may go elsewhere
          @folder = File.open(path, File::RDONLY)
        end

        # @return [Array<String>] names of what is in the folder
        def list = Dir.children(@path)

        # @param name [String]
        # @return [File] a new file, to be read and written
        def create(name) = File.open(at(name), File::CREAT | File::EXCL | File::RDWR | File::BINARY, 0o600)

        # @param name [String]
        # @return [File] to be read and synced
        def open(name) = File.open(at(name), File::RDONLY | File::BINARY)

        # @param name [String]
        # @return [File] one that is there, to be written and synced
        def reopen(name) = File.open(at(name), File::RDWR | File::BINARY)

        # @param name [String]
        # @return [File, nil] the lock, held until it is closed; nil when somebody else has it
        def lock(name)
          file = File.open(at(name), File::CREAT | File::RDWR, 0o600)
          return file if file.flock(File::LOCK_EX | File::LOCK_NB)
          file.close
          nil
        end

        # @param file [File]
        # @return [Integer] bytes
        def size(file) = file.size

        # @param file [File]
        # @return [Boolean] whether it still has a name
        def linked?(file) = file.stat.nlink > 0

        # @return [Boolean] whether the path still leads to the folder that was opened
        def in_place?
          named = File.stat(@path)
          open = @folder.stat
          [named.dev, named.ino] == [open.dev, open.ino]
        rescue Errno::ENOENT, Errno::ENOTDIR
          false
        rescue SystemCallError
          true # that cannot be told
        end

        # @param file [File]
        # @param size [Integer] bytes
        # @param offset [Integer] bytes
        # @return [String] so many, or fewer at the end of the file
        def read(file, size, offset)
          again { file.pread(size, offset) }
        rescue EOFError
          "".b
        end

        # @param file [File]
        # @param bytes [String]
        # @param offset [Integer] bytes
        # @return [Integer] how many bytes were written: not always all
        def write(file, bytes, offset) = again { file.pwrite(bytes, offset) }

        # Writes all of it.
        #
        # @param file [File]
        # @param bytes [String]
        # @param offset [Integer] bytes
        # @return [void]
        def write_all(file, bytes, offset)
          done = write(file, bytes, offset)
          while done < bytes.bytesize
            more = write(file, bytes.byteslice(done..), offset + done)
            raise Errno::EIO if more == 0
            done += more
          end
        end

        # Not IO#fdatasync: where that fails, Ruby calls fsync instead, which may succeed over pages that are lost.
        #
        # @param file [File]
        # @return [void]
        def sync_data(file)
          again { file.fsync }
          nil
        end

        # @param file [File]
        # @return [void]
        def sync(file)
          again { file.fsync }
          nil
        end

        # What was created, renamed and unlinked in the folder.
        #
        # @return [void]
        def sync_folder
          again { @folder.fsync }
          nil
        end

        # @param from [String]
        # @param to [String]
        # @return [void]
        def rename(from, to)
          File.rename(at(from), at(to))
          nil
        end

        # @param name [String]
        # @return [void]
        def unlink(name)
          File.unlink(at(name))
          nil
        end

        # @param file [File]
        # @return [void]
        def close(file)
          file.close
          nil
        end

        # @return [void]
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
