# frozen_string_literal: true

module CrashSimulation
  # Computes what a disk may hold after a loss of power: all that was synced; of the rest any sectors of 512 bytes, each as any of the
  # writes to it left it; and any part of the changes to names since the folder was synced.
  class PowerCut
    SECTOR = 512
    private_constant :SECTOR

    # The bytes that are on the disk, and what was written and not synced: offset and bytes.
    Inode = Struct.new(:bytes, :unsynced)

    def initialize(files = {})
      @names = files.to_h { |name, bytes| [name, Inode.new(bytes.b, [])] }
      @now = @names.dup
      @open = @names.dup
      @moves = []
    end

    # Applies one more of RecordingFiles#calls.
    def apply(call)
      case call
      in [:create, name, id] then @open[id] = Inode.new("".b, []).tap { |inode| move(name => inode) }
      in [:write, id, offset, bytes] then @open.fetch(id).unsynced << [offset, bytes]
      in [:sync, id] then bring_to_disk(@open.fetch(id))
      in [:rename, from, to] then move(from => nil, to => @now.fetch(from))
      in [:unlink, name] then move(name => nil)
      in [:sync_folder] then settle
      in [:note, _] then nil
      end
    end

    # A process was killed, and another begins, which knows files by their names. What was not synced is not yet on the disk.
    def restart = @open = @now.dup

    def files(random = nil)
      names = @names.dup
      # Most file systems keep the order of what is done to names.
      kept = random ? random.rand(@moves.size + 1) : 0
      reordered = random && random.rand(4) == 0
      @moves.each_with_index { |change, i| change_names(names, change) if reordered ? random.rand(2) == 0 : i < kept }
      names.transform_values { |inode| random ? torn(inode, random) : inode.bytes.dup }
    end

    def whole = @now.transform_values { |inode| inode.unsynced.each_with_object(inode.bytes.dup) { |(offset, bytes), all| lay(all, offset, bytes) } }

    private

    def move(change)
      @moves << change
      change_names(@now, change)
    end

    def change_names(names, change)
      change.each { |name, inode| inode ? names[name] = inode : names.delete(name) }
    end

    def settle
      @moves.each { |change| change_names(@names, change) }
      @moves.clear
    end

    def bring_to_disk(inode)
      inode.unsynced.each { |offset, bytes| lay(inode.bytes, offset, bytes) }
      inode.unsynced.clear
    end

    def torn(inode, random)
      likely = [0.0, 0.1, 0.5, 0.9, 1.0][random.rand(5)]
      inode.unsynced.each_with_object(inode.bytes.dup) do |(offset, bytes), all|
        each_sector(offset, bytes) { |at, piece| lay(all, at, piece) if random.rand < likely }
      end
    end

    def each_sector(offset, bytes)
      at = 0
      while at < bytes.bytesize
        size = [SECTOR - (offset + at) % SECTOR, bytes.bytesize - at].min
        yield offset + at, bytes.byteslice(at, size)
        at += size
      end
    end

    # What lies before is zero, where nothing is.
    def lay(all, offset, bytes)
      all << "\0".b * (offset - all.bytesize) if offset > all.bytesize
      all[offset, bytes.bytesize] = bytes
    end
  end
end
