package transfer

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// holes returns how many bytes of a file are in holes. Holes are read as zeros. It may stop counting above most. It doesn't use
// the number of blocks, because some file systems always report 0 blocks.
func holes(f *os.File, size, most int64) (n int64, err error) {
	for at := int64(0); at < size && n <= most; {
		data, err := f.Seek(at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) { // no data follows
			data, err = size, nil
		}
		if err != nil {
			break // the file system doesn't report holes
		}
		n += min(data, size) - at
		if at = data; data < size {
			if at, err = f.Seek(data, unix.SEEK_HOLE); err != nil {
				break
			}
		}
	}
	_, err = f.Seek(0, io.SeekStart)
	return n, err
}
