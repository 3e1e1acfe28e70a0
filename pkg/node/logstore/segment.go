package logstore

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const segmentSuffix = ".seg"

// segment is a file of frames. The name of the file is the position of its first byte in the log.
type segment struct {
	start, end int64 // in the log
	size       int64 // on the disk
}

func segmentPath(dir string, start int64) string {
	return filepath.Join(dir, fmt.Sprintf("%020d%s", start, segmentSuffix))
}

// listSegments returns the segments of a log in order. listSegments doesn't set the ends of segments.
func listSegments(dir string) ([]segment, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []segment
	for _, e := range entries {
		text, ok := strings.CutSuffix(e.Name(), segmentSuffix)
		start, err := strconv.ParseInt(text, 10, 64)
		if !ok || err != nil || !e.Type().IsRegular() {
			continue
		}
		out = append(out, segment{start: start})
	}
	slices.SortFunc(out, func(a, b segment) int { return cmp.Compare(a.start, b.start) })
	return out, nil
}

type placed struct {
	frame
	at int64
}

// scan reads the headers of a segment's frames. whole is the length of the segment without an incomplete frame at the end.
func scan(dir string, start int64) (frames []placed, whole int64, err error) {
	f, err := os.Open(segmentPath(dir, start))
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = f.Close() }() // opened for reading only
	info, err := f.Stat()
	if err != nil {
		return nil, 0, err
	}
	for {
		h, err := readHeader(f, whole)
		if errors.Is(err, io.EOF) || errors.Is(err, errTorn) {
			return frames, whole, nil
		}
		if err != nil {
			return frames, whole, err
		}
		next := whole + frameHeader + int64(h.size)
		if next > info.Size() {
			return frames, whole, nil // the frame was being written
		}
		frames = append(frames, placed{h, whole})
		whole = next
	}
}

// recover repairs the last segment. recover removes a frame that is incomplete because the program was killed. The lines are then read again from the
// kubelet's files.
func (c *codec) recover(dir string, start int64) (frames []placed, whole int64, err error) {
	frames, whole, err = scan(dir, start)
	if err != nil {
		return nil, 0, err
	}
	f, err := os.OpenFile(segmentPath(dir, start), os.O_RDWR, 0)
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	for len(frames) > 0 { // after a power cut, pages of the file may be missing
		last := frames[len(frames)-1]
		_, err := c.unpack(f, last.at)
		if err == nil {
			break
		}
		if !errors.Is(err, errTorn) {
			return nil, 0, err
		}
		frames, whole = frames[:len(frames)-1], last.at
	}
	return frames, whole, f.Truncate(whole)
}
